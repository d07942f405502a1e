"""What many processes are asked for on request, and that is good for a few seconds."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Final

from services.common.clock import monotonic

OLDEST: Final = 5.0  # seconds


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
