"""Whether this process stood still, so that another may have taken it for dead, and may write by now."""

from __future__ import annotations

import asyncio

from services.common.clock import Clock, monotonic

SILENT_SECONDS = 10.0
"""A writer that is silent for so long is taken for dead. One that stood still for much less asks before it goes on."""

_TICK_SECONDS = 0.5
_LONGEST_SECONDS = 2.0


class Standstill:
    """`run` looks regularly; callers also `look`, since a request may be handled after a standstill before `run` is."""

    def __init__(self, clock: Clock = monotonic) -> None:
        self._clock = clock
        self._looked = clock()
        self._doubted = False

    async def run(self) -> None:
        """Looks for ever."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self.look()

    def look(self) -> bool:
        """Whether the process stood still, and has not been `sure` since."""
        now = self._clock()
        self._doubted |= now - self._looked > _LONGEST_SECONDS
        self._looked = now
        return self._doubted

    def sure(self) -> None:
        """It was checked that no other process writes."""
        self._doubted = False
