"""A backup's file: a line with the format, pieces, and at the end the manifest.

Each part has its kind, its length and, behind it, a checksum of the whole file up to there: if a byte is changed, left
out, or moved, the checksum of a part is wrong. The file gets its name when it is whole and on disk.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self

from google.protobuf.message import DecodeError

from services.common.errors import PreconditionFailed, ResourceError
from services.rpc.store_pb2 import BackupPiece
from services.store.backup.manifest import FORMAT, Count, Manifest

_NAME = b"hopline backup "
_FIRST = _NAME + b"%d\n" % FORMAT
_HEAD = struct.Struct(">cI")  # kind, length
_PIECE, _MANIFEST = b"P", b"M"
# Synced at once. More would slow down a store on the same disk: its commits would wait.
_SYNC_BYTES = 4 << 20


class BackupWriter:
    """Takes pieces until `finish`; `discard` removes an unfinished file."""

    def __init__(self, path: Path, part: Path | None = None) -> None:
        """`part` is its name until it is whole. Raises PreconditionFailed when `path` exists, ResourceError when it
        cannot be written.
        """
        if path.exists():
            raise PreconditionFailed(f"{path} is there already: choose another name")
        self._path = path
        self._part = part or path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        self._sum = hashlib.sha256()
        self._count = Count()
        self._unsynced = 0
        try:
            self._file = self._open(self._part)
        except OSError as failure:
            raise _cannot_write(path, failure) from failure
        self._write(_FIRST)

    def _open(self, part: Path) -> BinaryIO:
        # For its user alone: it has messages in it, and the keys and hashes of passwords.
        return os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")

    def add(self, piece: BackupPiece) -> None:
        """Writes a piece. Raises ResourceError when it cannot be written."""
        self._count.add(piece)
        self._write_part(_PIECE, piece.SerializeToString())

    def finish(self) -> Manifest:
        """Gives the file its name when it is on disk. Raises ResourceError."""
        manifest = self._count.manifest()
        self._write_part(_MANIFEST, manifest.model_dump_json().encode())
        self._end()
        self._sync()
        try:
            self._file.close()
            self._part.rename(self._path)
            sync_folder(self._path.parent)
        except OSError as failure:
            raise _cannot_write(self._path, failure) from failure
        return manifest

    def _end(self) -> None:
        """Called when everything was written, before the file is closed."""

    def discard(self) -> None:
        """Removes the file, unless it was finished."""
        self._count.close()
        with suppress(OSError):
            self._file.close()
        self._part.unlink(missing_ok=True)

    def _write_part(self, kind: bytes, body: bytes) -> None:
        self._write(_HEAD.pack(kind, len(body)))
        self._write(body)
        self._write(self._sum.digest(), summed=False)
        self._unsynced += len(body)
        if self._unsynced >= _SYNC_BYTES:
            self._sync()

    def _sync(self) -> None:
        self._unsynced = 0
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as failure:
            raise _cannot_write(self._path, failure) from failure

    def _write(self, data: bytes, *, summed: bool = True) -> None:
        if summed:
            self._sum.update(data)
        try:
            self._put(data)
        except OSError as failure:
            raise _cannot_write(self._path, failure) from failure

    def _put(self, data: bytes) -> None:
        self._file.write(data)


def verify(path: Path) -> Manifest:
    """Reads all of a backup, and gives its manifest. Raises PreconditionFailed unless it is whole and unchanged."""
    with BackupReader(path) as reader:
        for _ in reader.pieces():
            pass
    return reader.manifest


class BackupReader:
    """Reads a file once; every method raises PreconditionFailed, which says what is wrong, and where."""

    manifest: Manifest
    """Set once all pieces were read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as failure:
            raise PreconditionFailed(f"cannot read {path}: {failure.strerror}") from failure
        self._size = os.fstat(self._file.fileno()).st_size
        self._sum = hashlib.sha256()
        self._number = 0  # of the part …
        self._start = 0  # … and where it begins
        self._count = Count()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._count.close()
        self._file.close()

    def pieces(self) -> Iterator[BackupPiece]:
        """The pieces, each after it was checked."""
        try:
            yield from self._pieces()
        except OSError as failure:
            raise PreconditionFailed(f"cannot read {self._path}: {failure.strerror}") from failure

    def _pieces(self) -> Iterator[BackupPiece]:
        self._read_first()
        while True:
            self._number += 1
            self._start = self._file.tell()
            kind, body = self._read_part()
            if kind == _MANIFEST:
                self._check_end(body)
                return
            try:
                piece = BackupPiece.FromString(body)
            except DecodeError as fault:
                raise self._wrong("was written so that it cannot be read") from fault
            self._count.add(piece)
            yield piece

    def _read_first(self) -> None:
        first = self._file.read(len(_FIRST))
        if first == _FIRST:
            self._sum.update(first)
            return
        rest = first.removeprefix(_NAME).rstrip()
        if first.startswith(_NAME) and rest.isdigit():
            text = f"{self._path} has format {int(rest)}, and this release reads {FORMAT}: restore it with its own"
            raise PreconditionFailed(text)
        raise PreconditionFailed(
            f"{self._path} is no backup of Hopline, or is damaged in its first {len(_FIRST)} bytes"
        )

    def _read_part(self) -> tuple[bytes, bytes]:
        head = self._read(_HEAD.size)
        kind, length = _HEAD.unpack(head)
        at = self._file.tell()
        if kind not in (_PIECE, _MANIFEST):
            raise self._wrong("is damaged at its beginning")
        if at + length + self._sum.digest_size > self._size:
            raise self._wrong("is not whole: the file was cut off, or is damaged there")
        body = self._read(length)
        self._sum.update(head + body)
        if self._read(self._sum.digest_size) != self._sum.digest():
            raise self._wrong("is damaged: its checksum is another")
        return kind, body

    def _read(self, length: int) -> bytes:
        data = self._file.read(length)
        if len(data) < length:
            raise self._wrong("is not whole: the file was cut off")
        return data

    def _check_end(self, manifest: bytes) -> None:
        self.manifest = Manifest.model_validate_json(manifest)
        found = self._count.manifest().model_copy(update={"release": self.manifest.release})
        if found != self.manifest or not self._count.ended:
            raise self._wrong("tells of another backup than this one")
        if self._file.read(1):
            raise PreconditionFailed(f"{self._path} goes on after its end at byte {self._file.tell() - 1}")

    def _wrong(self, what: str) -> PreconditionFailed:
        return PreconditionFailed(f"{self._path}: part {self._number}, from byte {self._start} on, {what}")


def sync_folder(folder: Path) -> None:
    """Syncs the names in a folder. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cannot_write(path: Path, failure: OSError) -> ResourceError:
    return ResourceError(f"cannot write {path}: {failure.strerror}")
