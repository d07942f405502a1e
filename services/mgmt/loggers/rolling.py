"""A file that begins anew when it is full, or each day, with some of its predecessors beside it. Waits for a disk.

Who writes it holds a lock that lies beside it, also while it makes archives of former ones, and one on the file itself:
another management process of the same machine stands by until this one ends. Others may move the file, cut it or delete
it at any moment, as logrotate does.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from services.common.clock import epoch_ns

_OF_A_DAY: Final = 10
"""Files that are kept of one day, whatever is said of days: a disk has an end."""
_MODE: Final = 0o640
_UNFINISHED: Final = 3600
"""Seconds in which nothing was added to an archive that nobody finishes any more."""


def _today() -> date:
    return datetime.fromtimestamp(epoch_ns() / 1e9, UTC).date()


@dataclass(frozen=True)
class Rolling:
    """What is wanted."""

    path: Path
    daily: bool = False
    on_restart: bool = False
    compress: bool = False
    history: int = 1
    """Former files that are kept; daily: days."""
    largest: int = 100 << 20
    """Bytes."""


class RollingFile:
    """One writer's."""

    def __init__(
        self, wanted: Rolling, today: Callable[[], date] = _today, opened: Callable[[], None] = lambda: None
    ) -> None:
        """`opened` is called each time that it is written here from now on: another may have written it before."""
        self._wanted = wanted
        self._today = today
        self._opened = opened
        self._file: int | None = None
        self._lock: int | None = None
        self._size = 0
        self._day = today()
        self._begins = wanted.on_restart
        self.written = 0
        """Of the texts that were given last: those are in it, also where the next ones cannot be written."""

    def hold(self) -> bool:
        """Whether it is written here from now on, and not by another process. Raises OSError."""
        self.written = 0
        if self._file is not None and not self._is_at_its_path(self._file):
            self._leave()  # somebody has moved it, or deleted it
        if self._file is None:
            return self._open()
        self._size = os.fstat(self._file).st_size  # somebody may have cut it
        return True

    def write(self, texts: Iterable[bytes]) -> None:
        """Those that are `written` then; for the others it has to `roll`. It is held. Raises OSError."""
        try:
            for text in texts:
                if self._is_due(len(text)):
                    break
                self._write(text)
                self.written += 1
        finally:
            # Moved or deleted meanwhile: who packs it may have read to its end before these. Rather twice than nowhere.
            if self._file is not None and not self._is_at_its_path(self._file):
                self.written = 0

    def _write(self, text: bytes) -> None:
        assert self._file is not None
        left = memoryview(text)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError:
            # The disk is full: half a line would be there again before the whole one. Others may have cut it meanwhile.
            os.ftruncate(self._file, min(self._size, os.fstat(self._file).st_size))
            raise
        self._size += len(text)

    def _is_due(self, more: int) -> bool:
        restarted, self._begins = self._begins, False
        if not self._size:
            self._day = self._today()
            return False
        full = self._size + more > self._wanted.largest
        return full or restarted or (self._wanted.daily and self._day != self._today())

    def _open(self) -> bool:
        self._wanted.path.parent.mkdir(parents=True, exist_ok=True)
        if not self._is_alone():
            return False
        file = os.open(self._wanted.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _MODE)
        if not self._holds(file):
            os.close(file)
            return False
        its = os.fstat(file)
        self._file, self._size = file, its.st_size
        self._day = datetime.fromtimestamp(its.st_mtime, UTC).date() if its.st_size else self._today()
        self._opened()
        return True

    def _is_alone(self) -> bool:
        """Has the lock, which stays where the file goes."""
        if self._lock is None:
            lock = os.open(lock_of(self._wanted.path), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _MODE)
            if not _locked(lock):
                os.close(lock)
                return False
            self._lock = lock
        return True

    def _holds(self, file: int) -> bool:
        """Alone, and what is at the path: another may have renamed it meanwhile."""
        return _locked(file) and self._is_at_its_path(file)

    def _is_at_its_path(self, file: int) -> bool:
        with suppress(OSError):
            return os.path.samestat(os.fstat(file), self._wanted.path.stat())
        return False

    def roll(self) -> None:
        """It begins anew when it is held again. Raises OSError; then it goes on where it was."""
        if self._file is None or not self._is_at_its_path(self._file):
            return  # somebody has rolled it already
        former = self._next_of_day() if self._wanted.daily else self._shifted()
        self._wanted.path.replace(former)
        self._leave()
        if self._wanted.compress:
            _compress(former)
        self._forget()

    def _shifted(self) -> Path:
        for number, file in sorted(self._numbered(), reverse=True):
            suffix = ".gz" if file.suffix == ".gz" else ""
            if number >= self._wanted.history:
                file.unlink(missing_ok=True)
            else:
                file.replace(f"{self._wanted.path}.{number + 1}{suffix}")
        return Path(f"{self._wanted.path}.1")

    def _next_of_day(self) -> Path:
        numbers = [number for day, number, _ in self._dated() if day == self._day]
        return Path(f"{self._wanted.path}.{self._day.isoformat()}.{max(numbers, default=-1) + 1}")

    def _forget(self) -> None:
        """What is too old, or too much, whichever way it was called: what is wanted may have changed."""
        _forget_unfinished(self._wanted.path)
        for number, file in self._numbered():
            if number > self._wanted.history:
                file.unlink(missing_ok=True)
        oldest, of_day = self._today() - timedelta(days=self._wanted.history), dict[date, int]()
        for day, _, file in sorted(self._dated(), reverse=True):
            of_day[day] = of_day.get(day, 0) + 1
            if day < oldest or of_day[day] > _OF_A_DAY:
                file.unlink(missing_ok=True)

    def _numbered(self) -> Iterator[tuple[int, Path]]:
        for file, found in _beside(self._wanted.path):
            if found["number"]:
                yield int(found["number"]), file

    def _dated(self) -> Iterator[tuple[date, int, Path]]:
        for file, found in _beside(self._wanted.path):
            with suppress(ValueError):  # no day of a calendar
                if found["day"]:
                    yield date.fromisoformat(found["day"]), int(found["of_day"]), file

    def _leave(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def close(self) -> None:
        """Another may write it then."""
        self._leave()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def lock_of(path: Path) -> Path:
    """Hidden, so that nobody who moves logs moves it."""
    return path.with_name(f".{path.name}.lock")


def longest_beside(path: Path, *, daily: bool, compress: bool) -> Path:
    """A former file may have a name that is so long."""
    day = f".{date.max.isoformat()}" if daily else ""
    return Path(f"{path}{day}.{999_999}{'.gz.part' if compress else ''}")


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def files(path: Path) -> list[Path]:
    """It and its predecessors, the latest first."""
    found = list[tuple[int, Path]]()
    for each in (path, *(file for file, _ in _beside(path))):
        with suppress(OSError):  # it is not there, or is renamed at this moment
            found.append((-each.stat().st_mtime_ns, each))
    return [file for _, file in sorted(found)]


def _beside(path: Path, suffix: str = r"(?:\.gz)?") -> list[tuple[Path, re.Match[str]]]:
    name = re.escape(path.name)
    wanted = re.compile(rf"{name}\.(?:(?P<number>\d{{1,6}})|(?P<day>\d{{4}}-\d\d-\d\d)\.(?P<of_day>\d{{1,6}})){suffix}")
    with suppress(OSError):
        return [(each, found) for each in path.parent.iterdir() if (found := wanted.fullmatch(each.name))]
    return []


def _forget_unfinished(path: Path) -> None:
    """Archives of a process that ended within one. Another may be writing one now: that is not old."""
    for file, _ in _beside(path, r"\.part"):
        with suppress(OSError):
            if epoch_ns() - file.stat().st_mtime_ns > _UNFINISHED * 1e9:
                file.unlink()


def _compress(path: Path) -> None:
    """Raises OSError; then it is there as it was."""
    beginning = Path(f"{path}.part")
    try:
        with path.open("rb") as read, gzip.open(beginning, "wb", compresslevel=6) as written:
            shutil.copyfileobj(read, written, 1 << 20)
        beginning.chmod(_MODE)
        beginning.replace(f"{path}.gz")
    except OSError:
        beginning.unlink(missing_ok=True)
        raise
    path.unlink()
