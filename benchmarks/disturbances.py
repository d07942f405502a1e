"""What can happen to a running stack: a partition moves, a queue process is killed."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

from benchmarks.failure import BenchmarkError
from services.common.clients.placement import Placed, PlacementClient
from services.common.config import Settings
from services.common.partition import partition_of
from services.common.topology.slots import SlotName

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

SECONDS = 60.0
LOOK_SECONDS = 0.1


class Disturbances:
    """Of a stack of two queue processes whose data is in `data`. Each returns when the stack has come to rest."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._settings = Settings(data=data)

    def move(self, queue: str) -> None:
        """The partition of `queue` goes to the other queue process."""
        asyncio.run(self._within_reason(self._move(queue)))

    def kill(self, queue: str) -> None:
        """The process that owns `queue` is killed (-9); the next one gets its share again."""
        asyncio.run(self._within_reason(self._kill(queue)))

    async def _move(self, queue: str) -> None:
        async with self._placement() as placement:
            partition = partition_of(SlotName("/", queue), self._settings.partitions)
            owner = _owner((await placement.all(self._settings.partitions))[partition])
            to = "queue-2" if owner.startswith("queue-1-") else "queue-1"
            await placement.moved([partition], await placement.move([partition], to))

    async def _kill(self, queue: str) -> None:
        async with self._placement() as placement:
            partition = partition_of(SlotName("/", queue), self._settings.partitions)
            killed = _owner((await placement.all(self._settings.partitions))[partition])
            file = self._data / "run" / f"{killed.rpartition('-')[0]}.pid"
            os.kill(int(file.read_text()), signal.SIGKILL)
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                owners = [_owner(placed) for placed in await placement.all(self._settings.partitions)]
                shares = [owners.count(owner) for owner in set(owners)]
                if killed not in owners and "" not in owners and max(shares) - min(shares) <= 1 < len(shares):
                    return

    def _placement(self) -> PlacementClient:
        return PlacementClient(self._settings.address_of("store"), self._settings.address_of("router"))

    @staticmethod
    async def _within_reason(work: Coroutine[None, None, None]) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                await work
        except TimeoutError:
            raise BenchmarkError("the stack does not come to rest") from None


def _owner(placed: Placed) -> str:
    return placed.owner.member if placed.owner else ""
