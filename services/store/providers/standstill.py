"""Whether this process stood still, so that another may have taken it for dead and write by now."""

from __future__ import annotations

import asyncio

from services.common.clock import Clock, monotonic

SILENT_SECONDS = 10.0
"""Who lets others hear nothing for so long is taken for dead. Anybody who stood still for much less asks first."""

_TICK_SECONDS = 0.5
_LONGEST_SECONDS = 2.0


class Standstill:
    """`run` beside everything else; what comes in after a standstill may be looked at before that has its turn."""

    def __init__(self, clock: Clock = monotonic) -> None:
        self._clock = clock
        self._looked = clock()
        self._doubted = False

    async def run(self) -> None:
        """For ever."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self.look()

    def look(self) -> bool:
        """Whether it stood still, and has not been `sure` since."""
        now = self._clock()
        self._doubted |= now - self._looked > _LONGEST_SECONDS
        self._looked = now
        return self._doubted

    def sure(self) -> None:
        """It was found since that nobody else writes."""
        self._doubted = False
