"""The folder of sockets and pid files: one supervisor at a time, and nothing left over from a crash."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from services.common.ended import ENDED, FORMER
from services.common.runtime import CannotStart
from services.common.streams.address import is_served
from services.supervisor.notes import Notes

_LONGEST_SOCKET = 107  # bytes, sockaddr_un.sun_path without its final zero
_ANOTHER = "set HOPLINE_DATA, and HOPLINE_RUN, to folders that this user may write"
_LAST_GASP = 3.0  # seconds after which the children of a killed supervisor are surely gone


class RunFolder:
    """Locks the data and run folders for as long as it is open; the kernel unlocks them for a process that dies."""

    def __init__(self, data: Path, run: Path) -> None:
        """Creates both folders; raises CannotStart when it cannot, and when another supervisor has one of them."""
        self._run = run.absolute()
        self._locks: list[int] = []
        self.notes = Notes()
        for folder in sorted({data.absolute(), self._run}):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._lock(folder)
            except OSError as failure:
                self._unlock()
                raise CannotStart(f"{folder} cannot be used: {failure.strerror}; {_ANOTHER}") from failure
        self._forget_programs()  # of a supervisor that was killed
        self.note_pid("supervisor", os.getpid())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Removes the files about programs, and unlocks."""
        self._forget_programs()
        self._unlock()

    def _forget_programs(self) -> None:
        for kind in (".pid", ENDED, FORMER):
            for path in self._run.glob(f"*{kind}"):
                path.unlink(missing_ok=True)

    def note_pid(self, name: str, pid: int) -> None:
        """Writes the process id of `name` to its file."""
        self.notes.write(self._run / f"{name}.pid", str(pid))

    def note_end(self, name: str, how: str) -> None:
        """Writes to a file how `name` ended; "": it serves again, so that was the former process."""
        path = self._run / f"{name}{ENDED}"
        if how:
            self.notes.write(path, how)
        else:
            self.notes.move(path, path.with_suffix(FORMER))

    async def clean(self, addresses: Iterable[str]) -> None:
        """Removes sockets that no process serves; raises CannotStart for one that is served, or has too long a path."""
        for path in _socket_paths(addresses):
            if len(os.fsencode(path)) > _LONGEST_SOCKET:
                raise CannotStart(f"the path of the socket {path} is too long; set HOPLINE_RUN to a shorter folder")
            await self._remove_stale(path)

    async def _remove_stale(self, path: Path) -> None:
        for _ in range(int(_LAST_GASP / 0.05)):
            if not is_served(path):
                return _remove(path)
            await asyncio.sleep(0.05)
        raise CannotStart(f"another process serves {path}; stop it first, or set HOPLINE_RUN to another folder")

    def _lock(self, folder: Path) -> None:
        lock = os.open(folder / "supervisor.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._locks.append(lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._unlock()
            raise CannotStart(
                f"Hopline runs already on {folder}; stop it first, or set HOPLINE_DATA to another folder"
            ) from None

    def _unlock(self) -> None:
        while self._locks:
            os.close(self._locks.pop())


def _socket_paths(addresses: Iterable[str]) -> list[Path]:
    return [Path(address.removeprefix("unix:")) for address in addresses if address.startswith("unix:")]


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
