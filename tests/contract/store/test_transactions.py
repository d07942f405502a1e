"""Local transactions: decided once, all or nothing."""

from __future__ import annotations

import asyncio

import pytest

from services.common import clock
from services.rpc.store_pb2 import Fence
from services.store.transactions import KEPT_MS
from tests.support.store_house import House, dequeue, enqueue


class Jumped(clock.Machine):
    """The wall clock is off by so many seconds."""

    def __init__(self, seconds: int) -> None:
        self._ns = seconds * 1_000_000_000

    def time_ns(self) -> int:
        return super().time_ns() + self._ns


async def test_commit_applies_all_parts_in_one(house: House) -> None:
    """Staged parts are invisible until the commit, which writes them and the outcome together."""
    await house.append(enqueue(10, 2))
    await house.append(enqueue(20, 1, partition=2, transaction=99), writer=1)
    await house.append(dequeue(10, 0, transaction=99), writer=2)
    assert await house.alive(2) == {}
    before = len(house.commits)
    outcome = await house.engine.transactions.commit(99, 2)
    assert outcome.committed
    assert len(house.commits) == before + 1
    assert await house.alive(1) == {10: [1]}
    assert await house.alive(2) == {20: [0]}


async def test_a_decision_is_final(house: House) -> None:
    """Committed stays committed and aborted aborted, however often any process asks, also after a restart."""
    await house.append(enqueue(10, 1, transaction=1))
    transactions = house.engine.transactions
    first = await asyncio.gather(transactions.commit(1, 1), transactions.commit(1, 1), transactions.resolve(1))
    assert [outcome.committed for outcome in first] == [True, True, True]
    assert not (await transactions.resolve(2)).committed
    await house.append(enqueue(20, 1, transaction=2))
    assert not (await transactions.commit(2, 1)).committed
    await house.restart()
    transactions = house.engine.transactions
    assert (await transactions.commit(1, 1)).committed
    assert (await transactions.resolve(1)).committed
    assert not (await transactions.commit(2, 1)).committed
    assert list(await house.alive()) == [10]


async def test_a_missing_part_aborts(house: House) -> None:
    """With fewer or more parts than are staged nothing is applied, and the abort is on record."""
    await house.append(enqueue(10, 1, transaction=1))
    assert not (await house.engine.transactions.commit(1, 2)).committed
    await house.append(enqueue(20, 1, transaction=2))
    await house.append(enqueue(30, 1, transaction=2))
    assert not (await house.engine.transactions.commit(2, 1)).committed
    await house.append(enqueue(40, 1, transaction=3))
    assert not (await house.engine.transactions.commit(3, 0)).committed
    assert await house.alive() == {}


async def test_a_decision_needs_no_parts(house: House) -> None:
    """A transaction of which nothing is durable is committed by the first commit, aborted by the first question."""
    assert (await house.engine.transactions.commit(1, 0)).committed
    assert not (await house.engine.transactions.resolve(2)).committed
    assert not (await house.engine.transactions.commit(2, 0)).committed
    await house.restart()
    assert (await house.engine.transactions.resolve(1)).committed


async def test_a_part_sent_again_counts_once(house: House) -> None:
    """A staged frame that comes again on another stream is the same part."""
    for _ in range(2):
        await house.append(enqueue(10, 1, transaction=1), writer=3, sequence=8)
    assert (await house.engine.transactions.commit(1, 1)).committed
    await house.append(enqueue(10, 1, transaction=1), writer=3, sequence=8)
    assert await house.alive() == {10: [0]}


async def test_a_crash_loses_undecided_parts_only(house: House) -> None:
    """After a restart an undecided transaction aborts, unless its writer sends the parts again."""
    await house.append(enqueue(10, 1, transaction=1), writer=3, sequence=1)
    await house.append(enqueue(20, 1), writer=3, sequence=2)
    await house.append(enqueue(30, 1, transaction=2), writer=3, sequence=3)
    await house.restart()
    await house.append(enqueue(10, 1, transaction=1), writer=3, sequence=1)
    assert (await house.engine.transactions.commit(1, 1)).committed
    assert not (await house.engine.transactions.commit(2, 1)).committed
    assert list(await house.alive()) == [10, 20]


async def test_fences_are_checked_at_the_commit(house: House) -> None:
    """A partition that changed hands after the staging aborts the whole transaction and is named."""
    old = (await house.acquire("partition/1"))["partition/1"]
    fence = Fence(lease="partition/1", epoch=old)
    assert not (await house.append(enqueue(10, 1, fences=[fence], transaction=1))).fenced
    await house.append(enqueue(20, 1, partition=2, transaction=1))
    house.clock.now += 2
    await house.acquire("partition/1", member="m2")
    assert list((await house.append(enqueue(30, 1, fences=[fence], transaction=2))).fenced) == ["partition/1"]
    outcome = await house.engine.transactions.commit(1, 2)
    assert not outcome.committed
    assert list(outcome.fenced) == ["partition/1"]
    assert await house.alive(2) == {}


async def test_outcomes_are_kept_for_an_hour(house: House) -> None:
    """Housekeeping forgets old outcomes and parts whose commit never came."""
    await house.append(enqueue(10, 1, transaction=(1 << 64) - 1))
    assert (await house.engine.transactions.commit((1 << 64) - 1, 1)).committed
    await house.append(enqueue(20, 1, transaction=5))
    house.run(KEPT_MS / 1000 + 1)
    await house.engine._housekeeping._step(tidy=True)
    assert await house.provider.outcomes() == []
    assert not (await house.engine.transactions.commit(5, 1)).committed


@pytest.mark.parametrize("seconds", [400 * 86400, -400 * 86400])
async def test_a_wall_clock_that_jumps(house: House, seconds: int) -> None:
    """By a year, either way: no outcome is forgotten for it, and none that comes later is taken for an old one."""
    await house.append(enqueue(10, 1, transaction=1))
    assert (await house.engine.transactions.commit(1, 1)).committed
    clock.set_source(Jumped(seconds))
    try:
        await house.engine._housekeeping._step(tidy=True)
        await house.append(enqueue(20, 1, transaction=2))
        assert (await house.engine.transactions.commit(2, 1)).committed
    finally:
        clock.set_source(clock.Machine())
    await house.engine._housekeeping._step(tidy=True)
    await house.restart()
    await house.engine._housekeeping._step(tidy=True)
    assert {row.transaction for row in await house.provider.outcomes()} == {1, 2}
    assert (await house.engine.transactions.resolve(1)).committed
    assert (await house.engine.transactions.resolve(2)).committed


async def test_time_in_which_the_store_was_not_there(house: House) -> None:
    """A day in which it stood still, or was away, makes no outcome older; an hour in several lives does."""
    await house.append(enqueue(10, 1, transaction=1))
    assert (await house.engine.transactions.commit(1, 1)).committed
    house.clock.now += 86_400
    await house.engine._housekeeping._step(tidy=True)
    assert (await house.engine.transactions.resolve(1)).committed
    for number in range(2, 5):
        house.run(KEPT_MS / 3000 + 60)
        await house.append(enqueue(number, 1))
        await house.restart()
    await house.engine._housekeeping._step(tidy=True)
    assert await house.provider.outcomes() == []


async def test_a_frame_that_decides(house: House) -> None:
    """A transaction of one frame is committed with it, in one commit, and answered so whenever it is asked about."""
    await house.append(enqueue(10, 2))
    frame = enqueue(20, 1, transaction=99, decides=True)
    frame.dequeues.extend(dequeue(10, 0).dequeues)
    before = len(house.commits)
    ack = await house.append(frame, writer=3, sequence=1)
    assert ack.HasField("committed")
    assert ack.committed
    assert len(house.commits) == before + 1
    assert await house.alive() == {10: [1], 20: [0]}
    assert (await house.engine.transactions.resolve(99)).committed
    assert (await house.engine.transactions.commit(99, 1)).committed


async def test_a_frame_that_decides_is_sent_again(house: House) -> None:
    """It counts once, and is answered as before, though the store was started anew and the partition has moved."""
    old = (await house.acquire("partition/1"))["partition/1"]
    frame = enqueue(10, 1, fences=[Fence(lease="partition/1", epoch=old)], transaction=1, decides=True)
    assert (await house.append(frame, writer=3, sequence=1)).committed
    await house.append(dequeue(10, 0))
    await house.restart()
    house.clock.now += 2
    await house.acquire("partition/1", member="m2")
    again = await house.append(frame, writer=3, sequence=1)
    assert again.committed
    assert not again.fenced
    assert await house.alive() == {}


async def test_a_frame_that_decides_is_too_late(house: House) -> None:
    """What another has asked about is aborted, and what has no fence any more is not decided."""
    await house.engine.transactions.resolve(1)
    ack = await house.append(enqueue(10, 1, transaction=1, decides=True))
    assert ack.HasField("committed")
    assert not ack.committed
    old = (await house.acquire("partition/1"))["partition/1"]
    house.clock.now += 2
    await house.acquire("partition/1", member="m2")
    fence = Fence(lease="partition/1", epoch=old)
    fenced = await house.append(enqueue(10, 1, fences=[fence], transaction=2, decides=True))
    assert list(fenced.fenced) == ["partition/1"]
    assert not fenced.HasField("committed")
    assert not (await house.engine.transactions.commit(2, 1)).committed
    assert await house.alive() == {}
