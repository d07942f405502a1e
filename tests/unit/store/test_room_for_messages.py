"""What is in flight when the disk gets low: written as far as there is room, in order, and nothing else waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from services.common import disk as rooms
from services.common.disk import Room
from services.rpc.store_pb2 import JournalAck, JournalFrame
from services.store import committer
from services.store.provider import Changes
from services.store.providers.memory import MemoryProvider
from services.store.providers.sqlite import SQLiteProvider
from tests.support.store_house import House, content, dequeue, enqueue

_MIB = 1 << 20
_TOTAL = 320 * _MIB  # of which 32 MiB are kept, 4 of them from messages
_OTHER = 2  # another writer


class Small(MemoryProvider):
    """A disk on which nothing is folded in: all that is written takes its size for good."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.free = _TOTAL
        self.least = _TOTAL

    def room(self) -> Room:
        return Room(self.free, _TOTAL)

    async def commit(self, changes: Changes) -> None:
        written = sum(map(len, changes.contents.values()))
        self.free -= written
        self.least = min(self.least, self.free - written)
        await super().commit(changes)


@pytest.fixture
async def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setattr(committer, "RETRY_SECONDS", 0.01)
    house = House("memory", tmp_path, Small)
    await house.start()
    yield house
    await house.stop()


def large(number: int, mebibytes: float, **more: int) -> JournalFrame:
    """One message of that size."""
    frame = enqueue(number, 1, **more)
    frame.contents[0].columns = content(number, 1, size=int(mebibytes * _MIB)).columns
    return frame


async def turns() -> None:
    """Time in which whatever has room is written."""
    await asyncio.sleep(0.05)


async def answer(done: asyncio.Future[JournalAck]) -> JournalAck:
    return await asyncio.wait_for(done, 5)


async def test_messages_wait_and_the_rest_does_not(house: House) -> None:
    """Without room messages wait, and what their writer sent after them; leases and other writers' dequeues go on."""
    await answer(house.append(large(1, 1), _OTHER))
    house.provider.free = 20 * _MIB
    late = [house.append(large(2, 10)), house.append(dequeue(2, 0))]
    early = house.append(dequeue(1, 0), _OTHER)
    assert await asyncio.wait_for(house.acquire("partition/9"), 5) == {"partition/9": 1}
    await answer(early)
    await turns()
    assert not any(done.done() for done in late)
    assert house.engine.leases._table.published("queue").unwritable == "low on disk: 20 MiB free, 32 MiB must be"
    house.provider.free = _TOTAL
    for done in late:
        assert not (await answer(done)).refused
    assert await house.alive() == {}
    assert not house.engine.leases._table.published("queue").unwritable


async def test_a_burst_is_written_as_far_as_there_is_room(house: House) -> None:
    """Of what comes at once as much is written as leaves room to fold it in and an eighth of the reserve."""
    house.provider.free = 60 * _MIB
    burst = [house.append(large(number, 10)) for number in range(1, 7)]
    await turns()
    assert [done.done() for done in burst] == [True] * 4 + [False] * 2
    assert house.provider.least >= 0
    assert house.provider.free > 4 * _MIB


async def test_what_is_larger_than_the_reserve(house: House) -> None:
    """It is said how much room it wants, though others would have plenty."""
    house.provider.free = 100 * _MIB
    held = house.append(large(1, 60))
    await turns()
    assert not held.done()
    assert house.engine.leases._table.published("queue").unwritable == "low on disk: 100 MiB free, 124 MiB must be"


async def test_transactions_wait_whole(house: House) -> None:
    """A commit without room waits; who asks meanwhile has it aborted, as one that never came, and it waits no more."""
    house.provider.free = 10 * _MIB
    for transaction in (5, 6):
        await answer(house.append(large(transaction, 10, transaction=transaction)))
    commits = [asyncio.ensure_future(house.engine.transactions.commit(number, 1)) for number in (5, 6)]
    await turns()
    assert not any(done.done() for done in commits)
    assert not (await asyncio.wait_for(house.engine.transactions.resolve(6), 5)).committed
    assert not (await asyncio.wait_for(commits[1], 5)).committed
    assert not commits[0].done()
    house.provider.free = _TOTAL
    assert (await asyncio.wait_for(commits[0], 5)).committed
    assert await house.alive() == {5: [0]}


async def test_who_takes_over_fences_what_waits(house: House) -> None:
    """What waits for room has its fences checked by the epoch of then; when they are refused it wants no room."""
    await house.acquire("partition/1")
    house.provider.free = 100 * _MIB
    held = house.append(large(1, 60, fences=[{"lease": "partition/1", "epoch": 1}]))
    await turns()
    assert house.engine.leases._table.published("queue").unwritable
    await house.acquire(release=["partition/1"])
    assert await asyncio.wait_for(house.acquire("partition/1", member="m2"), 5) == {"partition/1": 2}
    assert (await answer(held)).fenced == ["partition/1"]
    await turns()
    assert not house.engine.leases._table.published("queue").unwritable
    assert await house.alive() == {}


@pytest.mark.parametrize("seed", range(5))
async def test_each_writer_keeps_its_order(house: House, seed: int) -> None:
    """Whatever room there is from moment to moment, answers come in a writer's order, and all is there in the end."""
    random = Random(seed)
    answered: dict[int, list[int]] = {1: [], 2: [], 3: []}
    waiting = []
    for sequence in range(1, 41):
        for writer, answers in answered.items():
            number = writer * 1000 + sequence
            some = (large(number, random.random() * 10), dequeue(number - 1, 0), enqueue(number, 1))
            done = house.append(random.choice(some), writer, sequence)
            done.add_done_callback(lambda done, answers=answers: answers.append(done.result().sequence))
            waiting.append(done)
        house.provider.free = random.randrange(40) * _MIB
        await asyncio.sleep(random.choice((0, 0, 0.01)))
    house.provider.free = 100 * _TOTAL
    await asyncio.wait_for(asyncio.gather(*waiting), 10)
    assert all(answers == list(range(1, 41)) for answers in answered.values())
    assert house.provider.least >= 0


async def test_the_log_counts_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the log will be in the file as well: it is no room, until it is folded in."""
    monkeypatch.setattr(rooms, "room", lambda _: Room(100 * _MIB, 1000 * _MIB))
    provider = SQLiteProvider(tmp_path)
    house = House("small", tmp_path, lambda _: provider)
    await house.start()
    await provider.make_room()
    assert provider.room() == Room(100 * _MIB, 1000 * _MIB)
    await house.append(large(1, 8))
    found = provider.room()
    assert found
    assert 91 * _MIB < found.free <= 92 * _MIB
    await provider.make_room()
    assert provider.room() == Room(100 * _MIB, 1000 * _MIB)
    await house.stop()
