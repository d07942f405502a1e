"""The clocks of the process: every clock is read in this file only, so that a test can bring its own.

The monotonic clock counts on while the machine sleeps (CLOCK_BOOTTIME), as a promise "for so many seconds" ends for all
other machines too. Timers of the event loop do not: code that holds something for a time checks the clock when it acts.
The wall clock can jump either way: it tells when something happened. Where something ends at a wall-clock time, because
other processes or a later run of this one have to agree (mostly the time to live of messages), `Epoch` is read instead.

Pure code gets the clock, or the time, as an argument: `Clock` in, numbers out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

Clock = Callable[[], float]

_FOLLOWS = 10  # of the time that passes, one part in so many goes to following a jump
_MONOTONIC = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Source(Protocol):
    """Where time comes from."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never decreases."""

    def time_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""


class Machine:
    """The machine's clocks."""

    monotonic = staticmethod(partial(time.clock_gettime, _MONOTONIC))  # counts while the machine is suspended
    time_ns = staticmethod(time.time_ns)  # as set by hand or NTP; read for each row of the ledger


_source: Source = Machine()


def set_source(source: Source) -> None:
    """From now on all clocks of this process read `source`."""
    global _source  # noqa: PLW0603 - one time for the whole process is the point
    _source = source


def monotonic() -> float:
    """Seconds that never decrease, on this machine."""
    return _source.monotonic()


def epoch_ns() -> int:
    """Nanoseconds since the Unix epoch."""
    return _source.time_ns()


def epoch_ms() -> int:
    """Milliseconds since the Unix epoch."""
    return _source.time_ns() // 1_000_000


class Epoch:
    """Milliseconds since the Unix epoch as one process counts them: the wall clock, without its jumps.

    A jump is followed by a tenth of the time that passes, and never backwards, so a time to live lasts nine tenths of
    its length at least, whatever the clock is set to, and nothing ends because of the jump itself. A process that
    starts begins with the wall clock as it is: processes from before and after a jump differ by it until those from
    before have followed, and so do machines whose clocks differ.
    """

    def __init__(self) -> None:
        self._looked = monotonic()
        self._ns = self._wall = epoch_ns()

    def __call__(self) -> int:
        wall = epoch_ns()
        if 0 <= wall - self._wall < 1_000_000:  # called for each of many messages of one turn
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
    """Seconds until a multiple of `seconds` on the machine's clock: idle processes wake up together, not in turns.

    Gives between 0.1 and 1.1 times `seconds`, as timers may fire a moment early.
    """
    left = seconds - monotonic() % seconds
    return left if left > seconds / 10 else left + seconds
