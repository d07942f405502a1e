"""What has gathered while nothing could be written: all of it is written, in order, and no group is of any size."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.store import committer
from services.store.provider import Changes
from services.store.providers.memory import MemoryProvider
from tests.support.store_house import House, dequeue, enqueue

_FRAMES = 40


class Away(MemoryProvider):
    """Takes nothing until it is back."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.there = True

    async def commit(self, changes: Changes) -> None:
        if not self.there:
            raise ConnectionError("away")
        await super().commit(changes)


@pytest.fixture
async def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setattr(committer, "RETRY_SECONDS", 0.01)
    house = House("memory", tmp_path, Away)
    await house.start()
    yield house
    await house.stop()


async def test_it_goes_in_portions(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two writers: a group has what is a group, and one frame more; what comes last finds what it refers to."""
    monkeypatch.setattr(committer, "GROUP_BYTES", 5 * enqueue(1, 1).ByteSize())
    house.provider.there = False
    numbers = range(1, _FRAMES + 1)
    answers = [house.append(enqueue(number, 1), writer=number % 2 + 1) for number in numbers]
    answers += [house.append(dequeue(number, 0), writer=number % 2 + 1) for number in numbers[:10]]
    lease = asyncio.ensure_future(house.acquire("a"))
    await asyncio.sleep(0.05)
    assert not any(answer.done() for answer in answers)
    house.provider.there = True
    acks = await asyncio.wait_for(asyncio.gather(*answers), 20)
    assert not any(ack.refused or ack.fenced for ack in acks)
    assert await lease == {"a": 1}
    assert max(len(changes.contents) for changes in house.commits) <= 6
    assert sorted(await house.alive()) == [*numbers[10:]]
