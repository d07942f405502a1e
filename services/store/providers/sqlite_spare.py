"""A start on a full disk. Reading a file in WAL mode takes some room too, and so does counting the start.

That room is set aside while there is plenty, in a file that is deleted when a start finds no room. Then the store
serves its messages, leases and acknowledgements are written in what is left, and publishers wait. If other programs
have taken even that, the start waits for room.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import structlog

from services.common import disk

T = TypeVar("T")

SIZE = 2 << 20
_PLENTY = 8  # times as much is free
_AGAIN_SECONDS = 0.5
# Too little for the files beside the database and the first commits.
_NOTHING = 1 << 20
_MEANS_FULL = (sqlite3.SQLITE_FULL,)
_MAY_MEAN_FULL = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)

log = structlog.get_logger()


class Spare:
    """`<folder>/hopline.spare`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = "hopline.spare"
        self._path = folder / self.name

    def set_aside(self) -> None:
        """Sets room aside, if there is plenty and none was set aside."""
        found = disk.room(self._folder)
        if self._path.exists() or found is None or found.free < _PLENTY * SIZE:
            return
        try:
            with self._path.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, SIZE)
        except OSError as failure:
            log.info("no room is set aside for a start on a full disk", reason=str(failure))
            self._path.unlink(missing_ok=True)

    async def insist(self, work: Callable[[], Awaitable[T]]) -> T:
        """Does `work`, again and again until there is room for it; raises its failures that have another cause."""
        said = False
        while True:
            try:
                return await work()
            except sqlite3.Error as failure:
                if not self._is_full(failure):
                    raise
                if self._give_up():
                    what = "the disk is full: starts with the room that was set aside"
                    log.warning(what, reason=str(failure), do=self._room_wanted())
                    continue
                if not said:
                    said = True
                    log.error(  # noqa: TRY400 - it is the disk
                        "the disk is full: cannot start yet, will try until there is room",
                        reason=str(failure),
                        do=self._room_wanted(),
                    )
            await asyncio.sleep(_AGAIN_SECONDS)

    def _room_wanted(self) -> str:
        return f"make room on the disk of {self._folder.absolute()}; the store goes on by itself"

    def _give_up(self) -> bool:
        try:
            self._path.unlink()
        except OSError:
            return False
        return True

    def _is_full(self, failure: sqlite3.Error) -> bool:
        # Errors that SQLite does not raise itself (the thread is gone, a wrong call) have no code.
        code = getattr(failure, "sqlite_errorcode", 0) & 0xFF
        found = disk.room(self._folder)
        return code in _MEANS_FULL or (code in _MAY_MEAN_FULL and found is not None and found.free < _NOTHING)
