from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from services.store.provider import Changes, RecordRow
from tests.simulation.test_loop import begin, process_of
from tests.simulation.world import World
from tests.simulation.world.provider import Disk, SimulatedProvider

ROW = RecordRow("kind", "key", b"value", 1)


async def _commit(provider: SimulatedProvider, answered: list[bool]) -> None:
    await provider.commit(Changes(records={(ROW.kind, ROW.key): ROW}))
    answered.append(True)


def _killed_after(seconds: float, tmp_path: Path) -> tuple[bool, bool]:
    """Whether a commit is on disk, and whether it was answered, when its process is killed so long after it."""
    world, answered = World(1), list[bool]()
    provider = SimulatedProvider(tmp_path, Disk(Random(1), 1.0, world.time))

    async def scenario() -> bool:
        begin(world, "store-1", _commit(provider, answered))
        await asyncio.sleep(seconds)
        process_of(world, "store-1").die()
        await asyncio.sleep(10)
        return await provider.records() == [ROW]

    return world.run(scenario()), bool(answered)


def test_death_between_moments(tmp_path: Path) -> None:
    """A process can die before a commit is on disk, between that and the answer, and after the answer."""
    seen = [_killed_after(number / 10, tmp_path) for number in range(20)]
    assert list(dict.fromkeys(seen)) == [(False, False), (True, False), (True, True)]


def test_full_disk(tmp_path: Path) -> None:
    """A full disk writes nothing and says so, until there is room."""
    world = World(1)
    disk = Disk(Random(1), 0.001, world.time)
    provider = SimulatedProvider(tmp_path, disk)

    async def scenario() -> None:
        disk.full_until = 5.0
        with pytest.raises(OSError, match="no space"):
            await _commit(provider, [])
        assert await provider.records() == []
        await asyncio.sleep(5)
        await _commit(provider, [])
        assert await provider.records() == [ROW]

    world.run(scenario())
