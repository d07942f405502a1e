"""How long the store has run, over all of its lives: by this it tells what is old enough to be forgotten.

A wall clock that jumps makes nobody late who still has a question. Nor does the time in which the store was not there,
stood still, or slept with its machine: whoever would ask had no chance to.
"""

from __future__ import annotations

from services.common.clock import Clock

_MOST = 5.0  # seconds between two looks that count
_KEPT_EVERY = 60_000  # ms; what a crash takes back makes things younger, which does no harm


class RunningTime:
    """In milliseconds; grows with each look, many times a minute while the store runs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looked = clock()
        self._seconds = 0.0
        self._kept = 0

    def restore(self, kept: int) -> None:
        """Goes on from where it was kept last."""
        self._looked = self._clock()
        self._kept = kept
        self._seconds = kept / 1000

    def look(self) -> int:
        """Counts what has passed since the last look; gives the sum."""
        now = self._clock()
        self._seconds += min(max(now - self._looked, 0.0), _MOST)
        self._looked = now
        return int(self._seconds * 1000)

    def to_keep(self) -> int:
        """What is to be kept with the commit at hand, or 0 when the last that was kept is near enough."""
        now = self.look()
        if now - self._kept < _KEPT_EVERY:
            return 0
        self._kept = now
        return now
