"""What time it is, for the whole process: every clock that is read is read here, so that a test can bring its own.

The monotonic clock counts on while the machine sleeps (CLOCK_BOOTTIME), as whatever is promised "for so many seconds"
ends for everybody else too. Timers of the event loop do not: who holds something for a time compares when it acts. The
wall clock can jump either way: it tells when something was. Where something ends at a time of that clock, because other
processes or another life of this one have to agree (the time to live of messages, mostly), it is followed by `Epoch`.

Whoever is pure gets the clock, or the time, as an argument: `Clock` in, numbers out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

Clock = Callable[[], float]

_FOLLOWS = 10  # one part of so many of the time that passes
_MONOTONIC = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Source(Protocol):
    """Where time comes from."""

    def monotonic(self) -> float:
        """Seconds since whenever; never fewer than before."""

    def time_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""


class Machine:
    """Time as the machine tells it."""

    def monotonic(self) -> float:
        """Counts a suspend of the machine, where it has a clock that does."""
        return time.clock_gettime(_MONOTONIC)

    time_ns = staticmethod(time.time_ns)  # what somebody, or NTP, has set; asked for each row of the record


_source: Source = Machine()


def set_source(source: Source) -> None:
    """From now on time comes from there, for whoever asks in this process."""
    global _source  # noqa: PLW0603 - one time for the whole process is the point
    _source = source


def monotonic() -> float:
    """Seconds that only ever grow, on this machine."""
    return _source.monotonic()


def epoch_ns() -> int:
    """Nanoseconds since the Unix epoch."""
    return _source.time_ns()


def epoch_ms() -> int:
    """Milliseconds since the Unix epoch."""
    return _source.time_ns() // 1_000_000


class Epoch:
    """Milliseconds since the Unix epoch as one process counts them: the wall clock, but for its jumps.

    A jump is followed by a tenth of the time that passes, and never backwards, so what lives for a time lives for nine
    tenths of it at least, whatever anybody sets the clock to, and nothing ends for the jump itself. A process that
    starts begins with the wall clock as it is: those from before and after a jump differ by it until they have
    followed, and so do machines whose clocks differ.
    """

    def __init__(self) -> None:
        self._looked = monotonic()
        self._ns = self._wall = epoch_ns()

    def __call__(self) -> int:
        wall = epoch_ns()
        if 0 <= wall - self._wall < 1_000_000:  # asked for each of many messages of one turn
            return self._ns // 1_000_000
        self._wall = wall
        return self._follow(monotonic(), wall)

    def _follow(self, now: float, wall: int) -> int:
        passed = max(int((now - self._looked) * 1e9), 0)
        counted, most = self._ns + passed, passed // _FOLLOWS
        self._looked = now
        self._ns = min(max(wall, counted - most), counted + most)
        return self._ns // 1_000_000


def until_next(seconds: float) -> float:
    """How long until a multiple of `seconds` by the machine's clock: idle processes wake up together, not in turns.

    Gives between 0.1 and 1.1 times `seconds`, as timers may come a moment early.
    """
    left = seconds - monotonic() % seconds
    return left if left > seconds / 10 else left + seconds
