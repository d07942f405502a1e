"""Memory that another process of this machine may read: it has no name, and is gone with the last who has it."""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from services.rpc import queue_pb2 as pb

HEAD: Final = mmap.PAGESIZE
"""Octets in front of all else: the token, by which a reader knows that it has the right memory."""

_TOKEN: Final = 16
_STEP: Final = 4 << 20
"""Octets for which the system is asked at a time: written to before, they would end the process where it has none."""

_SEALS: Final = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW if hasattr(fcntl, "F_SEAL_SHRINK") else 0
"""What was cut off while it is read would kill the reader."""


class SharedMemory:
    """The writer's end."""

    def __init__(self, size: int) -> None:
        """`size` octets behind the head; they are taken as they are used.

        Raises OSError where the system has no such memory, or no more files.
        """
        if not (_SEALS and hasattr(os, "memfd_create")):
            raise OSError("this system has no memory without a name")
        self._token = secrets.token_bytes(_TOKEN)
        self._there = 0  # octets that the system has given
        self._file = os.memfd_create("hopline-bodies", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self._file, HEAD + size)
            fcntl.fcntl(self._file, fcntl.F_ADD_SEALS, _SEALS)
            os.pwrite(self._file, self._token, 0)
            self._map = mmap.mmap(self._file, HEAD + size)
        except OSError:
            os.close(self._file)
            raise

    @property
    def offer(self) -> pb.SharedMemory:
        """Says where it is."""
        return pb.SharedMemory(pid=os.getpid(), number=self._file, size=len(self._map), token=self._token)

    def write(self, place: int, parts: Iterable[bytes]) -> None:
        """From `place` on. Raises OSError where the system has no more memory; then some may be written."""
        for part in parts:
            end = place + len(part)
            while end > self._there:
                self._take_more()
            self._map[place:end] = part
            place = end

    def _take_more(self) -> None:
        step = min(_STEP, len(self._map) - self._there)
        os.posix_fallocate(self._file, self._there, step)
        self._there += step

    def give_back(self) -> None:
        """Nothing is there any more, and nobody reads it: the system has it again, until more is written."""
        if self._there > HEAD:
            with suppress(OSError):
                self._map.madvise(mmap.MADV_REMOVE, HEAD, self._there - HEAD)
                self._there = HEAD

    def close(self) -> None:
        """Who reads it has it yet."""
        self._map.close()
        os.close(self._file)


def read(offer: pb.SharedMemory) -> memoryview:
    """The reader's end: the memory that a peer offers. Raises OSError where it cannot be had.

    The peer's numbers may mean something else here: it may be in another container. So a file is looked at before it is
    opened, and again before it is taken for the memory: to open a terminal or a pipe is heard elsewhere, and with a
    file of its own that it closes again a process loses its locks.
    """
    path = Path(f"/proc/{offer.pid}/fd/{offer.number}")
    _check(path.stat(), offer)
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _check(os.fstat(file), offer)
        if fcntl.fcntl(file, fcntl.F_GET_SEALS) & _SEALS != _SEALS or not _SEALS:
            raise OSError("it may be cut off")
        memory = memoryview(mmap.mmap(file, offer.size, prot=mmap.PROT_READ))
    finally:
        os.close(file)
    if not secrets.compare_digest(memory[:_TOKEN], offer.token):
        raise OSError("it is another memory")
    return memory


def _check(found: os.stat_result, offer: pb.SharedMemory) -> None:
    has_name = found.st_nlink > 0
    if has_name or not stat.S_ISREG(found.st_mode) or found.st_size != offer.size or offer.size <= HEAD:
        raise OSError("it is another file")
