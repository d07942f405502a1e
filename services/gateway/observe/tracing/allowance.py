"""How many messages are traced because their publishers ask for it: spans take more time than messages themselves."""

from __future__ import annotations

import math

from services.common.clock import Clock, monotonic


class Allowance:
    """So many a second; those that a second had left may come in the next."""

    def __init__(self, a_second: float, clock: Clock = monotonic) -> None:
        """`a_second`: 0 for any number."""
        self._a_second = a_second
        self._clock = clock
        self._left = a_second
        self._at = clock()

    def take(self, count: int) -> int:
        """How many of so many are allowed now; these are used up."""
        if not self._a_second:
            return count
        now = self._clock()
        self._left = min(self._left + (now - self._at) * self._a_second, self._a_second)
        self._at = now
        taken = min(count, math.floor(self._left))
        self._left -= taken
        return taken


NO_LIMIT = Allowance(0)
