"""What this process has logged lately: the last lines, for loggers that are elsewhere (`log_serving.py`).

Also while nobody follows them: who did may have died, and its successor wants what came meanwhile; and a logger that
comes later begins with what led to it. Threads log too.
"""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Mapping
from sys import getsizeof
from typing import Any, Final, NamedTuple

from services.common.clock import epoch_ns, monotonic

_KEPT: Final = 10_000
"""Lines: those of some seconds, in which mgmt may be away, however much is logged."""
_ROOM: Final = 4 << 20
"""Bytes that they take, about."""
_APIECE: Final = 650
"""Bytes of one beside its texts."""
_LONGEST: Final = 8 << 10
"""Characters of one."""
_LONGEST_NAME: Final = 255
"""Characters of whose it is, of each."""
_NAMES: Final = {"warning": "WARN", "critical": "ERROR"}
_APART: Final = frozenset({"event", "level", "timestamp", "service", "exception", "logger"})
_WHOSE: Final = ("virtual_host", "user", "connection", "container")


class LogLine(NamedTuple):
    """One, as `proto/logs.proto` says."""

    number: int
    time_us: int
    level: str
    logger: str
    service: str
    instance: str
    text: str
    whose: Mapping[str, str]
    logged: float
    """By this process's monotonic clock: the other may be set before it is told."""


class RecentLines:
    """Of one run of one process."""

    def __init__(self) -> None:
        self.closing = False
        """Whether it ends: who follows it is let go."""
        self.begin("")

    def begin(self, instance: str) -> None:
        """For a process of that name, which may have been forked of one that has logged."""
        self.process = uuid.uuid4().hex
        self.instance = instance
        self._lines: deque[LogLine] = deque()
        self._last = 0
        self._size = 0
        self._lock = threading.RLock()  # while it is held, garbage may be collected, which may log

    def add(self, told: Mapping[str, Any], logger: str, *, own: bool) -> None:
        """A line, as it would be written."""
        level = _NAMES.get(told["level"], told["level"].upper())
        service = self.instance.partition("-")[0] if own else ""
        whose = {name: str(told[name])[:_LONGEST_NAME] for name in _WHOSE if told.get(name)}
        rest = level, logger, service, self.instance, text_of(told)[:_LONGEST], whose
        with self._lock:
            self._last += 1
            self._lines.append(line := LogLine(self._last, epoch_ns() // 1000, *rest, monotonic()))
            self._size += _size_of(line)
            while len(self._lines) > _KEPT or self._size > _ROOM:
                self._size -= _size_of(self._lines.popleft())

    def since(self, number: int, most: int) -> list[LogLine]:
        """The first lines after that one that are known yet; of `most` at once."""
        with self._lock:
            first = self._last - len(self._lines) + 1
            begin = max(number + 1, first) - first
            return [self._lines[each] for each in range(begin, min(begin + most, len(self._lines)))]


def _size_of(line: LogLine) -> int:
    return _APIECE + getsizeof(line.text) + sum(map(getsizeof, line.whose.values()))


def text_of(told: Mapping[str, Any]) -> str:
    """A line in words, as on a console: what happened, what about, and where it was raised."""
    about = "".join([f" {key}={told[key]}" for key in sorted(told.keys() - _APART)])
    exception = f"\n{told['exception']}" if told.get("exception") else ""
    return f"{told['event']}{about}{exception}"


RECENT: Final = RecentLines()
"""Those of this process."""
