"""A number of slots whose waiting clients take turns by address: a crowd at one address does not keep out the others.

Nor does a crowd at many addresses keep out good ones, those without failed logins: they have every other turn, and
slots that doubtful addresses do not get.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSlots:
    """Slots for one event loop."""

    def __init__(self, slots: int, for_doubtful: int) -> None:
        """At most `for_doubtful` of the slots are for addresses that are not good."""
        self._free = slots
        self._free_for_doubtful = for_doubtful
        self._waiting = {good: _Turns() for good in (True, False)}
        self._next = True  # the kind whose turn is next, where both wait

    @asynccontextmanager
    async def slot(self, whose: str, *, good: bool) -> AsyncIterator[None]:
        """Waits for a slot, in turn with others than `whose`, and holds it."""
        await self._take(whose, good=good)
        try:
            yield
        finally:
            self._give(good=good)

    async def _take(self, whose: str, *, good: bool) -> None:
        if self._has_room(good=good):
            self._count(-1, good=good)
            return
        turn = self._waiting[good].add(whose)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give(good=good)  # it got a slot, and does not use it
            raise

    def _give(self, *, good: bool) -> None:
        """Frees a slot, for the next in turn."""
        self._count(1, good=good)
        for kind in (self._next, not self._next):
            if self._has_room(good=kind) and (turn := self._waiting[kind].take()):
                self._next = not kind
                self._count(-1, good=kind)
                turn.set_result(None)
                return

    def _has_room(self, *, good: bool) -> bool:
        return self._free > 0 and (good or self._free_for_doubtful > 0)

    def _count(self, more: int, *, good: bool) -> None:
        self._free += more
        self._free_for_doubtful += 0 if good else more


class _Turns:
    """Waiting clients in turns: the first key is next."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def add(self, whose: str) -> asyncio.Future[None]:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(whose, deque()).append(turn)
        return turn

    def take(self) -> asyncio.Future[None] | None:
        """The next turn; those that were cancelled are skipped."""
        while self._waiting:
            whose = next(iter(self._waiting))
            queue = self._waiting.pop(whose)
            turn = queue.popleft()
            if queue:
                self._waiting[whose] = queue
            if not turn.done():
                return turn
        return None
