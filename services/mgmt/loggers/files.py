"""Files of a logger, as they are told and given: read as they are sent, never whole into memory."""

from __future__ import annotations

import base64
import os
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote

from services.common.errors import NotFound, Unavailable
from services.mgmt.loggers.rolling import files
from services.mgmt.model.answer import Answer
from services.mgmt.model.faults import IllegalConfiguration

LARGEST: Final = 1 << 30
"""Bytes of files that are put into one archive: it takes disk, and the processor, until it is sent."""
MOST_ARCHIVES: Final = 2
_ROOM: Final = threading.BoundedSemaphore(MOST_ARCHIVES)
_PIECE: Final = 1 << 18
_IN_A_MAP: Final = 1 << 20
"""Bytes that are given over AMQP, too."""
_ON_DISK: Final = 1 << 20
"""Bytes of an archive beyond which it is made in a file."""


def details(path: Path) -> list[dict[str, Any]]:
    """Of a logger's file and its former ones, as Broker-J's LogFileDetails."""
    found = []
    for each in files(path):
        with suppress(OSError):  # it has just been renamed
            its = each.stat()
            found.append({"name": each.name, "lastModified": its.st_mtime_ns // 1_000_000, "size": its.st_size})
    return found


def content(path: Path, operation: str, arguments: Mapping[str, Any]) -> Answer:
    """Of one of them as it is, or of several in an archive; waits for a disk. Raises NotFound, Unavailable."""
    there = {each.name: each for each in files(path)}
    named = [arguments["fileName"]] if operation == "getFile" else arguments.get("fileName", list(there))
    if unknown := [name for name in named if name not in there]:
        raise NotFound(f"no file {unknown[0]!r} is of this logger; there are {', '.join(there)}")
    if operation == "getFile":
        return _one(there[named[0]])
    return _several(path, [there[name] for name in dict.fromkeys(named)])


def _one(path: Path) -> Answer:
    try:
        opened = path.open("rb")
    except FileNotFoundError:
        raise NotFound(f"file {path.name!r} has just been renamed; ask for logFiles again") from None
    # What is written while it is sent is not in it.
    return _given(opened, path.name, "application/x-gzip" if path.suffix == ".gz" else "text/plain")


def _several(path: Path, wanted: Sequence[Path]) -> Answer:
    if sum(_size(each) for each in wanted) > LARGEST:
        raise IllegalConfiguration(f"an archive holds {LARGEST >> 20} MiB at most: getFiles gives some, getFile one")
    if not _ROOM.acquire(blocking=False):
        raise Unavailable(f"{MOST_ARCHIVES} archives are being made or sent, and no more at once; try again")
    # Where the files are there is room for as much as they take; in containers there is little elsewhere.
    archive = tempfile.SpooledTemporaryFile(max_size=_ON_DISK, dir=str(path.parent))  # noqa: SIM115 - closed when it is sent
    over = _Once(_ROOM.release)
    try:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as into:
            for each in wanted:
                with suppress(FileNotFoundError):
                    into.write(each, each.name)
        return _given(archive, f"{path.name}.zip", "application/zip", over)
    except BaseException:
        archive.close()
        over()
        raise


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


class _Once:
    """Does it at the first call."""

    def __init__(self, do: Callable[[], object]) -> None:
        self._do: Callable[[], object] | None = do

    def __call__(self) -> None:
        do, self._do = self._do, None
        if do:
            do()


def _nothing() -> None:
    """Is to be done."""


def _given(opened: IO[bytes], name: str, media_type: str, over: Callable[[], object] = _nothing) -> Answer:
    """`over` is called when it is sent, or nobody wants it any more."""
    size = opened.seek(0, os.SEEK_END)
    opened.seek(0)
    told: dict[str, Any] = {"name": name, "contentType": media_type, "size": size}
    if size <= _IN_A_MAP:
        data = opened.read(size)
        opened.close()
        over()
        told["content"] = base64.b64encode(data).decode()
        return Answer(told, _headers(name, media_type, len(data)), data)
    return Answer(told, _headers(name, media_type, size), pieces=_Pieces(opened, size, over))


def _headers(name: str, media_type: str, size: int) -> dict[str, str]:
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return {"Content-Type": media_type, "Content-Disposition": disposition, "Content-Length": str(size)}


class _Pieces(Iterator[bytes]):
    """Of what is open; closed after the last, and also where a client goes before it has read any."""

    def __init__(self, opened: IO[bytes], size: int, over: Callable[[], object]) -> None:
        self._opened, self._left, self._over = opened, size, over

    def __next__(self) -> bytes:
        piece = b"" if self._opened.closed else self._opened.read(min(_PIECE, self._left))
        if not piece:
            self._close()
            raise StopIteration
        self._left -= len(piece)
        return piece

    def _close(self) -> None:
        self._opened.close()
        self._over()

    def __del__(self) -> None:
        self._close()
