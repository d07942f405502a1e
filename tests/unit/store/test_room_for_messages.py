"""What is in flight when the disk gets low: written as far as there is room, in order, and nothing else waits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from services.common import disk as rooms
from services.common.disk import Room
from services.rpc.store_pb2 import JournalAck, JournalFrame
from services.store import committer
from services.store.committer import Work
from services.store.journal import Append
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


def large(number: int, mebibytes: float, **more: Any) -> JournalFrame:
    """One message of that size."""
    frame = enqueue(number, 1, **more)
    frame.contents[0].columns = content(number, 1, size=int(mebibytes * _MIB)).columns
    return frame


async def turns() -> None:
    """Time in which all that has room is written."""
    for _ in range(20):  # of the loop too, however slow the machine is
        await asyncio.sleep(0.003)


def publishers_wait_no_more(house: House) -> None:
    """Where there is room by now."""
    for _ in range(2):
        house.engine.disk.look()
        house.clock.now += 5


async def answer(done: asyncio.Future[JournalAck]) -> JournalAck:
    return await asyncio.wait_for(done, 5)


async def test_messages_wait_and_the_rest_does_not(house: House) -> None:
    """Without room messages wait, and what their writer says of them; leases and other writers' dequeues go on."""
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
    publishers_wait_no_more(house)
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
    """A commit without room waits; a question for its outcome aborts it, as one that never came, and ends the wait."""
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


async def test_a_new_owner_fences_what_waits(house: House) -> None:
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
    publishers_wait_no_more(house)
    assert not house.engine.leases._table.published("queue").unwritable
    assert await house.alive() == {}


async def test_dequeues_go_ahead_of_what_waits(house: House) -> None:
    """What frees room does not wait behind its writer's messages, nor beside them; it is answered in its turn."""
    await answer(house.append(enqueue(1, 2)))
    await answer(house.append(enqueue(2, 1)))
    house.provider.free = 10 * _MIB
    mixed = large(3, 10, apart=True)
    mixed.dequeues.add(batch=1, indexes=[0])
    late = [house.append(mixed), house.append(dequeue(2, 0, apart=True))]
    await turns()
    assert await house.alive() == {1: [1]}
    assert not any(done.done() for done in late)
    house.provider.free = _TOTAL
    assert [(await answer(done)).fenced for done in late] == [[], []]
    assert await house.alive() == {1: [1], 3: [0]}


async def test_no_dequeue_goes_ahead_of_its_entry(house: House) -> None:
    """What is said of entries that wait is written behind them, while the rest of the same frame goes ahead."""
    await answer(house.append(enqueue(1, 1)))
    house.provider.free = 10 * _MIB
    both = dequeue(1, 0, apart=True)
    both.dequeues.add(batch=2, indexes=[0])
    late = [house.append(large(2, 10)), house.append(large(3, 20)), house.append(both)]
    await turns()
    assert await house.alive() == {}
    house.provider.free = 4 * _MIB + 25 * _MIB
    await answer(late[0])
    await turns()
    assert await house.alive() == {}, "its dequeue came as soon as it was there"
    house.provider.free = _TOTAL
    await answer(late[2])
    assert await house.alive() == {3: [0]}


async def test_what_gives_up_a_place_for_another_waits(house: House) -> None:
    """A frame that does not say that its dequeues stand for themselves is written whole or not at all."""
    await answer(house.append(enqueue(1, 1)))
    house.provider.free = 10 * _MIB
    moved = large(2, 10)
    moved.dequeues.add(batch=1, indexes=[0])
    late = [house.append(moved), house.append(dequeue(1, 0))]
    await turns()
    assert await house.alive() == {1: [0]}
    house.provider.free = _TOTAL
    await answer(late[1])
    assert await house.alive() == {2: [0]}


async def test_what_is_known_goes_with_its_dequeue(house: House) -> None:
    """Of what was taken that is written ahead which speaks of entries on disk, and nothing of those that wait."""
    await answer(house.append(enqueue(1, 2)))
    house.provider.free = 10 * _MIB
    both = dequeue(1, 0, apart=True)
    both.dequeues.add(batch=2, indexes=[0])
    for batch in (1, 2):
        both.taken.add(id=100 + batch, partition=1, origin=7, upto=batch + 1, messages=bytes([batch]))
        both.taken_of.append(batch)
    late = [house.append(large(2, 10)), house.append(both)]
    await turns()
    assert [taken.id for taken in (await house.recovered())[0].taken] == [101]
    house.provider.free = _TOTAL
    await answer(late[1])
    assert [taken.id for taken in (await house.recovered())[0].taken] == [101, 102]


async def test_a_store_that_starts_again_takes_it_once_more(house: House) -> None:
    """What went ahead is sent again with all that was not answered, and changes nothing the second time."""
    await answer(house.append(enqueue(1, 2)))
    house.provider.free = 10 * _MIB
    frames = [large(2, 10), dequeue(1, 0, apart=True)]
    for frame in frames:
        house.append(frame)
    await turns()
    await house.restart()
    assert await house.alive() == {1: [1]}
    again = [house.append(frame, sequence=frame.sequence) for frame in frames]
    house.provider.free = _TOTAL
    for done in again:
        await answer(done)
    assert await house.alive() == {1: [1], 2: [0]}


async def test_nothing_goes_ahead_for_a_fenced_owner(house: House) -> None:
    """A former owner's dequeues stay out while its frame waits for another partition's sake."""
    for partition in (1, 2):
        await house.acquire(f"partition/{partition}")
    fences = [{"lease": f"partition/{number}", "epoch": 1} for number in (1, 2)]
    await answer(house.append(enqueue(1, 2, fences=fences[:1])))
    await house.acquire(release=["partition/1"])
    await house.acquire("partition/1", member="m2")
    house.provider.free = 10 * _MIB
    mixed = large(2, 10, partition=2, fences=fences, apart=True)
    mixed.dequeues.add(batch=1, indexes=[0])
    held = house.append(mixed)
    await turns()
    assert await house.alive() == {1: [0, 1]}
    house.provider.free = _TOTAL
    assert (await answer(held)).fenced == ["partition/1"]
    assert await house.alive() == {1: [0, 1]}


async def test_what_only_waits_for_its_turn_is_let_be(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Consumers acknowledge for hours while messages wait: a frame of which all went ahead is not looked at again."""
    looks: Counter[int] = Counter()
    ahead = Append.ahead

    def counted(append: Append, held: set[int]) -> Work | None:
        looks[append._frame.sequence] += 1
        return ahead(append, held)

    monkeypatch.setattr(Append, "ahead", counted)
    await answer(house.append(enqueue(1, 21)))
    house.provider.free = 10 * _MIB
    held = house.append(large(2, 10))
    await turns()
    late = [house.append(dequeue(1, 0, apart=True))]
    for index in range(1, 20):
        await asyncio.sleep(0.01)
        late.append(house.append(dequeue(1, index, apart=True)))
    await turns()
    assert await house.alive() == {1: [20]}
    assert [looks[sequence] for sequence in range(3, 23)] == [1] * 20
    assert not any(done.done() for done in late)
    house.provider.free = _TOTAL
    assert [(await answer(done)).sequence for done in (held, *late)] == list(range(2, 23))
    assert await house.alive() == {1: [20], 2: [0]}


async def test_a_frame_that_decides_needs_room(house: House) -> None:
    """Where there is none it is only staged, and its commit waits; what brings no messages decides all the same."""
    await answer(house.append(large(1, 10)))
    house.provider.free = _MIB
    staged = await answer(house.append(large(5, 10, transaction=5, decides=True)))
    assert not staged.HasField("committed")
    commit = asyncio.ensure_future(house.engine.transactions.commit(5, 1))
    assert (await answer(house.append(dequeue(1, 0, transaction=6, decides=True)))).committed
    assert not commit.done()
    house.provider.free = _TOTAL
    assert (await asyncio.wait_for(commit, 5)).committed
    assert (await answer(house.append(large(7, 10, transaction=7, decides=True)))).committed


async def test_frames_that_decide_share_the_room(house: House) -> None:
    """Each counts what those before it in the same group take: no more is written than there is room for."""
    house.provider.free = 48 * _MIB  # 44 for messages, each of which is written twice
    acks = await asyncio.gather(
        *(answer(house.append(large(number, 10, transaction=number, decides=True))) for number in range(1, 5))
    )
    assert [ack.committed for ack in acks] == [True, True, False, False]


async def test_transactions_that_free_go_ahead(house: House) -> None:
    """What only settles is staged, and committed, while its writer's messages wait; not before what it settles."""
    await answer(house.append(enqueue(1, 1)))
    house.provider.free = 0
    held = house.append(large(2, 10))
    later = house.append(dequeue(2, 0, transaction=6))
    await answer(house.append(dequeue(1, 0, transaction=5)))
    assert (await asyncio.wait_for(house.engine.transactions.commit(5, 1), 5)).committed
    assert await house.alive() == {}
    assert not held.done()
    assert not later.done()
    house.provider.free = _TOTAL
    await answer(later)
    assert (await asyncio.wait_for(house.engine.transactions.commit(6, 1), 5)).committed
    assert await house.alive() == {}


@pytest.mark.parametrize("seed", range(5))
async def test_each_writer_keeps_its_order(house: House, seed: int) -> None:
    """With any room from moment to moment, answers come in a writer's order, and all is there in the end."""
    random = Random(seed)
    answered: dict[int, list[int]] = {1: [], 2: [], 3: []}
    waiting = []
    for sequence in range(1, 41):
        for writer, answers in answered.items():
            number = writer * 1000 + sequence
            apart = dequeue(number - random.randrange(1, 9), 0, apart=True)
            some = (large(number, random.random() * 10), dequeue(number - 1, 0), apart, enqueue(number, 1))
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
