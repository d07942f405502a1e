"""When a program that ended is started again. Pure."""

from __future__ import annotations

from dataclasses import dataclass

QUICK = 5.0  # seconds: who lives longer is started again at once
ATTEMPTS = 5  # starts in a row that never served before the program is given up
_FIRST = 0.2
_LONGEST = 5.0


@dataclass(slots=True)
class Restarts:
    """The history of one program; who may not be given up is tried for ever."""

    may_give_up: bool = True
    _failures: int = 0  # in a row, without having served
    _next: float = 0.0

    def delay_after(self, lifetime: float, *, served: bool) -> float | None:
        """Seconds to wait before the next start, or None to give up.

        Only starts that never served count towards giving up: who can serve is worth restarting however often it dies.
        """
        self._failures = 0 if served else self._failures + 1
        if self._failures >= ATTEMPTS and self.may_give_up:
            return None
        delay = 0.0 if lifetime >= QUICK else self._next
        self._next = min(max(_FIRST, delay * 2), _LONGEST)
        return delay
