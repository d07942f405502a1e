"""Continues a backup's file where a process that was killed has stopped."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import BinaryIO

from services.common.errors import BrokerError, PreconditionFailed
from services.rpc.store_pb2 import BackupHead
from services.store.backup.file import BackupReader, BackupWriter


class Changed(PreconditionFailed):
    """The data to be written differs from what the file has."""


class ContinuedWriter(BackupWriter):
    """Takes all pieces from the first: those in the file already are compared, byte by byte, instead of written."""

    def __init__(self, path: Path, *, anew: bool = False) -> None:
        """With `anew` a file that was begun is not continued but begun again."""
        self._anew = anew
        self.head: BackupHead | None = None
        """The first piece in the file, with the time at which it was begun."""
        self.resumed = 0
        """Bytes that were in the file already."""
        super().__init__(path, path.with_name(f".{path.name}.part"))

    def _open(self, part: Path) -> BinaryIO:
        file = os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise PreconditionFailed(f"{part} is being written by another process") from None
        self.head = None if self._anew else _head(part)
        if self.head is None:
            file.truncate()
        self._left = os.fstat(file.fileno()).st_size
        return file

    def _put(self, data: bytes) -> None:
        there = self._file.read(min(self._left, len(data)))
        if there != data[: len(there)]:
            raise Changed("the store has changed since the file was begun")
        self._left -= len(there)
        self.resumed += len(there)
        if len(there) < len(data):
            super()._put(data[len(there) :])

    def _end(self) -> None:
        if self._left:
            raise Changed("the store has less than it had when the file was begun")

    def close(self) -> None:
        """Closes the file; what was written stays, to be continued."""
        self._count.close()
        self._file.close()


def _head(part: Path) -> BackupHead | None:
    try:
        with BackupReader(part) as reader:
            first = next(reader.pieces())
    except BrokerError:
        return None
    return first.head if first.HasField("head") else None
