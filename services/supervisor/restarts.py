"""Decides when a program that ended is started again. Pure."""

from __future__ import annotations

from dataclasses import dataclass

QUICK = 5.0  # seconds: a program that lived longer is started again at once
ATTEMPTS = 5  # starts in a row that failed before the program is given up
_FIRST = 0.2
_LONGEST = 5.0


@dataclass(slots=True)
class Restarts:
    """The history of one program; one that may not be given up is tried for ever."""

    may_give_up: bool = True
    _failures: int = 0  # in a row
    _next: float = 0.0

    def delay_after(self, lifetime: float, *, cannot_start: bool) -> float | None:
        """Seconds to wait before the next start, 0 to 5, or None to give up.

        `cannot_start` says that it ended by itself, with an error, when neither it nor another of its role had ever
        served. Only that counts towards giving up: a program that was killed, or can serve, is restarted however often
        it dies, and a stack that serves does not end because one of its processes cannot.
        """
        self._failures = self._failures + 1 if cannot_start else 0
        if self._failures >= ATTEMPTS and self.may_give_up:
            return None
        delay = 0.0 if lifetime >= QUICK else self._next
        self._next = min(max(_FIRST, delay * 2), _LONGEST)
        return delay
