"""Gateways that will open a stream in a moment: a new owner of a partition has not heard yet what they hold."""

from __future__ import annotations

from typing import Final

from services.common.clock import Clock, monotonic

ANYBODY: Final = 0  # no gateway's origin


class Expected:
    """True while a gateway is expected."""

    def __init__(self, clock: Clock = monotonic) -> None:
        self._clock = clock
        self._until: dict[int, float] = {}  # by origin

    def __bool__(self) -> bool:
        now = self._clock()
        self._until = {origin: until for origin, until in self._until.items() if until > now}
        return bool(self._until)

    def expect(self, origin: int, seconds: float) -> None:
        """Expects the gateway of this origin for so long from now; ANYBODY stands for gateways not known yet."""
        self._until[origin] = self._clock() + seconds

    def came(self, origin: int) -> None:
        """The gateway has opened a stream again: from now on the link is asked whether it has told everything."""
        self._until.pop(origin, None)
