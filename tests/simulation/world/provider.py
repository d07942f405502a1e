"""A store provider whose commits have three moments: asked, on disk, answered. The process can die between any two."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from random import Random

from services.common.disk import Room
from services.store.provider import Changes, StoredBatch
from services.store.providers.memory import MemoryProvider

_SLOWER = 100.0
_READS = 0.2  # share of the rows that have to be waited for
_TOTAL = 1 << 30
_NEVER = 8 << 20  # what messages never get of such a disk
_LITTLE = (0, 0, 0, 0, 500, 2000)  # bytes that they do, doubled, while there is hardly any room


class Disk:
    """How the disk is at the moment; times are of the loop."""

    def __init__(self, random: Random, commit: float, now: Callable[[], float]) -> None:
        """`commit` is how long a commit takes in the mean."""
        self.full_until = self.fails_until = self.slow_until = self.low_until = 0.0
        self._random = random
        self._commit = commit
        self._now = now

    def heal(self) -> None:
        """Ends all faults."""
        self.full_until = self.fails_until = self.slow_until = self.low_until = 0.0

    def room(self) -> Room:
        """All of it, or hardly any: then others free and take some from moment to moment."""
        if self._now() >= self.low_until:
            return Room(_TOTAL, _TOTAL)
        return Room(_NEVER + self._random.choice(_LITTLE), _TOTAL)

    def moment(self) -> float:
        """Half of a commit."""
        slower = _SLOWER if self._now() < self.slow_until else 1.0
        return slower * self._commit * self._random.random()

    async def turn(self) -> None:
        """Others may have one while something is read."""
        if self._random.random() < _READS:
            await asyncio.sleep(self.moment())

    def check(self) -> None:
        """Raises OSError when nothing can be written."""
        if self._now() < self.full_until:
            raise OSError(28, "no space left on device")
        if self._now() < self.fails_until and self._random.random() < 0.7:
            raise OSError(5, "input/output error")


class SimulatedProvider(MemoryProvider):
    """What is on disk outlives every process: the same object serves one after the other."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        super().__init__(folder)
        self._origin = 0
        self._incarnation = 0
        self._disk = disk

    def room(self) -> Room:
        """As the disk has it."""
        return self._disk.room()

    async def commit(self, changes: Changes) -> None:
        """Raises OSError, and then nothing was written."""
        await asyncio.sleep(self._disk.moment())
        self._disk.check()
        await super().commit(changes)  # does not wait: a process that is killed now or later has written all
        await asyncio.sleep(self._disk.moment())

    async def batches(self, numbers: Sequence[int]) -> AsyncIterator[StoredBatch]:
        """Some of them at a time, commits between: as from a real disk."""
        async for batch in super().batches(numbers):
            await self._disk.turn()
            yield batch
