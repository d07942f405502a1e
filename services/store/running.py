"""How long the store has run, over all of its starts: by this it tells what is old enough to be forgotten.

So a wall clock that jumps makes no client's question too late. Nor does the time in which the store was down, stood
still, or slept with its machine: clients had no chance to ask.
"""

from __future__ import annotations

from typing import Protocol

from services.common.clock import Clock

_MOST = 5.0  # seconds between two looks that count
_KEPT_EVERY = 60_000  # ms; after a crash things seem younger by this at most, which does no harm


class Time(Protocol):
    """What commits need of it."""

    def look(self) -> int:
        """As RunningTime says."""

    def to_keep(self) -> int:
        """As RunningTime says."""


class Unkept:
    """The same time, where it is not written."""

    def __init__(self, time: Time) -> None:
        self.look = time.look

    def to_keep(self) -> int:
        """Nothing."""
        return 0


class RunningTime:
    """In milliseconds; grows with each look, many times a minute while the store runs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looked = clock()
        self._seconds = 0.0
        self._kept = 0

    def restore(self, kept: int) -> None:
        """Goes on from the value that was written last."""
        self._looked = self._clock()
        self._kept = kept
        self._seconds = kept / 1000

    def look(self) -> int:
        """Counts the time since the last look; gives the sum."""
        now = self._clock()
        self._seconds += min(max(now - self._looked, 0.0), _MOST)
        self._looked = now
        return int(self._seconds * 1000)

    def to_keep(self) -> int:
        """The value to write with the present commit, or 0 when the last one written is near enough."""
        now = self.look()
        if now - self._kept < _KEPT_EVERY:
            return 0
        self._kept = now
        return now
