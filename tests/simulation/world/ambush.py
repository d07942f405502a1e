"""Faults that wait for a moment: until a caller asks for a method, says more on its stream, or is about to be answered.

Between two steps of a protocol there is so little time that a fault at any moment hardly ever meets it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from tests.simulation.world.loop import Loop
from tests.simulation.world.processes import PROCESS, Process

ASKED, RECEIVED, ANSWERED = "asked", "received", "answered"  # a call; a message of its stream
_AT_LEAST = 0.0001  # seconds, for what is sprung to happen first


class Ambush(NamedTuple):
    """`spring` is called, as `process`, at the first such moment; the call goes on `hold` seconds later."""

    method: str
    moment: str
    hold: float
    spring: Callable[[], None]
    process: Process


class Ambushes:
    """Those that are laid and not yet sprung."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._laid: list[Ambush] = []

    def lay(self, method: str, moment: str, hold: float, spring: Callable[[], None]) -> None:
        """For the next moment of that kind. `method` is without its service."""
        self._laid.append(Ambush(method, moment, hold, spring, PROCESS.get()))

    def lift(self) -> None:
        """There are none any more."""
        self._laid.clear()

    async def meet(self, path: str, moment: str) -> None:
        """The server of `path` is at that moment."""
        method = path.rpartition("/")[2]
        ambush = next((each for each in self._laid if (each.method, each.moment) == (method, moment)), None)
        if ambush:
            self._laid.remove(ambush)
            self._loop.soon(ambush.process, ambush.spring)
            await asyncio.sleep(max(ambush.hold, _AT_LEAST))
