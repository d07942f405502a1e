"""What many processes are asked for on request, and that is good for a few seconds."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Final

from services.common.clock import monotonic
from services.common.runtime import Tasks

OLDEST: Final = 5.0  # seconds
_EVERY: Final = 2.0  # seconds
_WANTED: Final = 30.0  # after the last request nobody is asked any more


class Recent(ABC):
    """One asks for all: who wants it meanwhile waits for the same answer."""

    def __init__(self) -> None:
        self._at = -OLDEST
        self._turn = asyncio.Lock()

    async def recent(self) -> None:
        """Returns when it is of the last five seconds."""
        await self.younger_than(OLDEST)

    async def younger_than(self, seconds: float) -> None:
        """The same of so many. What is young enough is there at once, also while somebody asks."""
        if self._age() >= seconds:
            async with self._turn:
                if self._age() >= seconds:
                    await self._take()

    async def now(self) -> None:
        """Returns when it is of this moment."""
        async with self._turn:
            await self._take()

    def _age(self) -> float:
        return monotonic() - self._at

    async def _take(self) -> None:
        began = monotonic()
        await self._ask()
        self._at = began

    @abstractmethod
    async def _ask(self) -> None:
        """Asks all of them, and keeps what they say."""


class Followed(Recent):
    """The same of what takes long to be told: asked in the background while there are requests, so that few wait."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what
        self._wanted = 0.0
        self._tasks = Tasks()
        self._running: asyncio.Task[None] | None = None

    async def followed(self) -> None:
        """Returns when it is of the last five seconds; for some more it is asked anew by itself."""
        self._wanted = monotonic()
        if self._running is None or self._running.done():
            self._running = self._tasks.start(self._keep(), self._what)
        await self.recent()

    async def stop(self) -> None:
        """Stops asking."""
        await self._tasks.stop()

    async def _keep(self) -> None:
        while monotonic() - self._wanted < _WANTED:
            await self.younger_than(_EVERY)
            await asyncio.sleep(_EVERY)
