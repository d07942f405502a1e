"""Queue processes that start together with this one: a share is left to them, so that nothing is moved afterwards.

Those that `hopline up` starts beside it are expected by name before the store knows of them, and for longer: a
supervisor starts each of them, and again if it dies, but on a busy machine one may come a second after the other.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import Final

_SURE: Final = 5.0  # seconds


class Together:
    """Who is waited for, for `patience` seconds, and which `sisters` for `longest`, from `begin` on."""

    def __init__(self, patience: float, sisters: Collection[str] = (), longest: float = 0.0) -> None:
        self._sisters = sisters
        self._patience = patience
        self._longest = max(longest, patience)
        self._began = 0.0

    def begin(self, now: float) -> tuple[float, ...]:
        """This process serves from now on; in so many seconds shares that were left may be free."""
        self._began = now
        return self._patience, self._longest

    def joining(self, now: float, members: AbstractSet[str], joined: AbstractSet[str]) -> set[str]:
        """To whom a share is left: of those that have `joined`, and those that have not; `members` serve already."""
        passed = now - self._began
        here = set(joined - members) if passed < self._patience else set()
        return here | (missing(self._sisters, members | here) if passed < self._longest else set())


def together(name: str, processes: int, patience: float, run_folder: Path) -> Together:
    """Of the process `name`, one of so many that `hopline up` runs."""
    return Together(patience, sisters_of(name, processes), _SURE if _is_supervised(run_folder) else 0.0)


def sisters_of(name: str, processes: int) -> list[str]:
    """Names of the others of so many; none in a container, which is named after its host and cannot know the others."""
    names = [f"queue-{number}" for number in range(1, processes + 1)]
    return [each for each in names if each != name] if name in names else []


def missing(sisters: Iterable[str], members: Collection[str]) -> set[str]:
    """The sisters of which no run is among `members`, which are named as in `member_of`."""
    return {name for name in sisters if not any(member.startswith(f"{name}-") for member in members)}


def member_of(name: str, run: str) -> str:
    """The member name of one run of a process."""
    return f"{name}-{run}"


def _is_supervised(run_folder: Path) -> bool:
    """Whether the supervisor that has noted its process id there is alive.

    Another program may have its number by now: the kernel knows whether the folder is locked.
    """
    try:
        pid = int((run_folder / "supervisor.pid").read_text())
        return pid > 0 and _is_alive(pid) and _is_locked(run_folder / "supervisor.lock")
    except (OSError, ValueError, OverflowError):
        return False


def _is_alive(pid: int) -> bool:
    with suppress(PermissionError):
        os.kill(pid, 0)
    return True


def _is_locked(path: Path) -> bool:
    lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)  # with what was locked
    return False
