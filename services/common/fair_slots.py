"""So many at a time, and those who wait in turns of whom they wait for: a crowd of one does not keep out the others."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSlots:
    """Of one event loop. Whose turn is next comes first in `_waiting`."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def slot(self, whose: str) -> AsyncIterator[None]:
        """One of the slots, when it is the turn of `whose`."""
        await self._take(whose)
        try:
            yield
        finally:
            self._give()

    async def _take(self, whose: str) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(whose, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give()  # it had its turn, and does not use it
            raise

    def _give(self) -> None:
        """The next in turn has the slot, or it is free."""
        while self._waiting:
            whose = next(iter(self._waiting))
            queue = self._waiting.pop(whose)
            turn = queue.popleft()
            if queue:
                self._waiting[whose] = queue
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
