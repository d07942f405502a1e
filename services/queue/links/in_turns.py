"""Work on what is in queues, of all links: so much of it in each turn of the event loop, in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from services.common.containment import by_itself
from services.common.runtime import Tasks
from services.queue.machine import turn

_WHAT = "claiming and settling deliveries"


class InTurns:
    """What is not begun in one turn begins in a later one, in which leases hold."""

    def __init__(self, tasks: Tasks, until_certain: Callable[[], Awaitable[None]]) -> None:
        self._tasks = tasks
        self.until_certain = until_certain
        self._line: deque[tuple[int, Callable[[], None]]] = deque()
        self._spent = 0

    @property
    def room(self) -> int:
        """How much can be done at once."""
        return 0 if self._line else turn.AT_ONCE - self._spent

    def do(self, cost: int, work: Callable[[], None]) -> None:
        """Does it now, if there is room for as many messages as it takes; else when its turn comes."""
        if not self._line and cost <= self.room:
            self.spend(cost)
            by_itself(_WHAT, work)
            return
        self.later(cost, work)

    def later(self, cost: int, work: Callable[[], None]) -> None:
        """Does it when its turn comes, not in this one."""
        self._line.append((cost, work))
        if len(self._line) == 1:
            self._tasks.start(self._run(), _WHAT)

    def spend(self, cost: int) -> None:
        """So much is done in this turn."""
        if cost and not self._spent:
            asyncio.get_running_loop().call_soon(self._another_turn)
        self._spent += cost

    def _another_turn(self) -> None:
        self._spent = 0

    async def _run(self) -> None:
        while self._line:
            await asyncio.sleep(0)
            await self.until_certain()
            self._some()

    def _some(self) -> None:
        done = 0
        while self._line and (not done or done + self._line[0][0] <= turn.AT_ONCE):
            cost, work = self._line[0]
            done += max(cost, 1)
            by_itself(_WHAT, work)
            self._line.popleft()  # not before: what it adds is behind it
        self.spend(done)
