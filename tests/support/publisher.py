"""Frames for a store's journal, one after the other, and what has become of them."""

from __future__ import annotations

import asyncio
from typing import Protocol

from services.rpc.store_pb2 import JournalAck, JournalFrame
from tests.support.store_house import enqueue

AT_ONCE = 5
"""How many frames are under way."""


class Journal(Protocol):
    """A store's, in this process or another."""

    def append(self, frame: JournalFrame) -> asyncio.Future[JournalAck]:
        """The future has the answer."""


class Publisher:
    """A few frames under way at a time, from when it is made, to partition 1."""

    def __init__(self, journal: Journal) -> None:
        self.sent: list[asyncio.Future[JournalAck]] = []
        self._journal = journal
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while True:
            if sum(not done.done() for done in self.sent) < AT_ONCE:
                self.sent.append(self._journal.append(enqueue((len(self.sent) + 1) * 10, 2)))
            await asyncio.sleep(0.001)

    def confirmed(self) -> int:
        return sum(done.done() for done in self.sent)

    def expected(self) -> dict[int, list[int]]:
        """What is alive when all of it is there, once: as House says it."""
        return {(number + 1) * 10: [0, 1] for number in range(len(self.sent))}

    async def more(self, count: int) -> None:
        """Returns when so many more are confirmed: servers that elect a leader on a busy machine take their time."""
        wanted = self.confirmed() + count
        async with asyncio.timeout(100):
            while self.confirmed() < wanted:
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Returns when all are confirmed."""
        self._task.cancel()
        await asyncio.wait_for(asyncio.gather(*self.sent), 100)

    def abandon(self) -> None:
        """Waits for nothing."""
        self._task.cancel()
