"""A number of slots whose waiting clients take turns by address: a crowd at one address does not keep out the others.

Nor does a crowd at many addresses keep out good ones, those without failed logins: they have every other turn, and
slots that doubtful addresses do not get.

Turns are of no use to others while one client holds all slots for long: with `shares` nobody has more of them than are
left. Of eight one alone has four, each of two three, so that there are some for the next.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class FairSlots:
    """Slots for one event loop."""

    def __init__(self, slots: int, for_doubtful: int, *, shares: bool = False) -> None:
        """At most `for_doubtful` of the slots are for addresses that are not good."""
        self._free = slots
        self._held: Counter[str] | None = Counter() if shares else None
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
            self._give(whose, good=good)

    async def _take(self, whose: str, *, good: bool) -> None:
        if self._has_slot(good=good) and self._has_share(whose):
            self._count(-1, whose, good=good)
            return
        turn = self._waiting[good].add(whose)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give(whose, good=good)  # it got a slot, and does not use it
            raise

    def _give(self, whose: str, *, good: bool) -> None:
        """Frees a slot, for the next in turn; with shares, perhaps for more than one."""
        self._count(1, whose, good=good)
        while self._hand_on():
            pass

    def _hand_on(self) -> bool:
        for kind in (self._next, not self._next):
            if self._has_slot(good=kind) and (found := self._waiting[kind].take(self._has_share)):
                whose, turn = found
                self._next = not kind
                self._count(-1, whose, good=kind)
                turn.set_result(None)
                return True
        return False

    def _has_slot(self, *, good: bool) -> bool:
        return self._free > 0 and (good or self._free_for_doubtful > 0)

    def _has_share(self, whose: str) -> bool:
        return self._held is None or self._held[whose] < self._free

    def _count(self, more: int, whose: str, *, good: bool) -> None:
        self._free += more
        self._free_for_doubtful += 0 if good else more
        if self._held is not None:
            self._held[whose] -= more
            if not self._held[whose]:
                del self._held[whose]


class _Turns:
    """Waiting clients in turns: the first key is next."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def add(self, whose: str) -> asyncio.Future[None]:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(whose, deque()).append(turn)
        return turn

    def take(self, may: Callable[[str], bool]) -> tuple[str, asyncio.Future[None]] | None:
        """The next turn of those who may have one; those that were cancelled are skipped."""
        while (whose := next(filter(may, self._waiting), None)) is not None:
            queue = self._waiting.pop(whose)
            turn = queue.popleft()
            if queue:
                self._waiting[whose] = queue
            if not turn.done():
                return whose, turn
        return None
