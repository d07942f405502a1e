"""Partitions that one process reads together: what they share comes once, and none waits for one that is far larger."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from services.common.errors import Fenced
from services.rpc.store_pb2 import Fence, JournalFrame, RecoveredBatch, RecoverRequest
from services.store.provider import Changes
from services.store.recovery import recover
from tests.support.store_house import House, content, dequeue, enqueue, entries


async def _read(house: House, epochs: dict[str, int]) -> tuple[RecoveredBatch, list[RecoveredBatch]]:
    fences = [Fence(lease=lease, epoch=epoch) for lease, epoch in epochs.items()]
    request = RecoverRequest(partition=1, fence=fences[0], fences=fences)
    known, *rest = [message async for message in recover(house.engine.provider, house.engine.epochs, request)]
    return known, rest


def _batches(messages: Sequence[RecoveredBatch]) -> list[RecoveredBatch]:
    return [batch for message in messages for batch in message.batches]


async def test_what_they_share_comes_once(house: House) -> None:
    """By id over all of them; batches in a row on one content have its columns at the first."""
    await house.append(JournalFrame(contents=[content(9, 6)], entries=[entries(10, 6, of=9)]))
    await house.append(JournalFrame(entries=[entries(11, 6, partition=2, of=9), entries(12, 6, partition=3, of=9)]))
    await house.append(enqueue(20, 3, partition=2))
    await house.append(JournalFrame(entries=[entries(30, 6, of=9)]))
    await house.append(dequeue(11, 4))
    for _ in range(2):
        _, rest = await _read(house, {"partition/1": 0, "partition/2": 0})
        found = [(batch.entries.id, batch.entries.partition, list(batch.dequeued)) for batch in _batches(rest)]
        assert found == [(10, 1, []), (11, 2, [4]), (20, 2, []), (30, 1, [])]
        columns = [batch.columns for batch in _batches(rest)]
        nine = content(9, 6).columns
        assert columns == [nine, b"", content(20, 3).columns, nine]
        await house.restart()


async def test_each_says_when_it_has_ended(house: House) -> None:
    """With its last batch, or at once where there is none; small ones come before one with many times as much."""
    many = range(1000, 3000)
    for start in many[::500]:
        await house.append(
            JournalFrame(
                contents=[content(number, 1) for number in range(start, start + 500)],
                entries=[entries(number, 1) for number in range(start, start + 500)],
            )
        )
    await house.append(enqueue(5000, 1, partition=2))
    known, rest = await _read(house, {f"partition/{number}": 0 for number in (1, 2, 3)})
    assert (list(known.partitions), list(known.ended)) == ([1, 2, 3], [3])
    assert [number for message in rest for number in message.ended] == [2, 1]
    assert [batch.entries.id for batch in _batches(rest)] == [5000, *many]


async def test_a_content_that_is_gone(house: House) -> None:
    """Its batches are passed over, and all others come; each partition ends, also one that has nothing else."""
    await house.append(JournalFrame(contents=[content(9, 6)], entries=[entries(10, 6, of=9)]))
    await house.append(JournalFrame(entries=[entries(11, 6, partition=2, of=9), entries(12, 6, partition=3, of=9)]))
    await house.append(enqueue(20, 3, partition=2))
    await house.provider.commit(Changes(dead_contents=[9]))
    _, rest = await _read(house, {f"partition/{number}": 0 for number in (1, 2, 3)})
    assert [batch.entries.id for batch in _batches(rest)] == [20]
    assert sorted(number for message in rest for number in message.ended) == [1, 2, 3]


async def test_one_that_another_process_has(house: House) -> None:
    """It is left out, and the others are read; where that is all of them, it is said as of one."""
    held = await house.acquire("partition/1", "partition/2")
    await house.append(enqueue(10, 1, fences=[Fence(lease="partition/1", epoch=1)]))
    await house.append(enqueue(20, 1, 2, fences=[Fence(lease="partition/2", epoch=1)]))
    known, rest = await _read(house, held | {"partition/2": 7})
    assert list(known.partitions) == [1]
    assert [(floor.partition, floor.uid) for floor in known.floors] == [(1, 10)]
    assert [batch.entries.id for batch in _batches(rest)] == [10]
    with pytest.raises(Fenced):
        await _read(house, {"partition/1": 7})


async def test_what_comes_meanwhile_is_its_owners(house: House) -> None:
    """One that has ended is served, and what it takes then is not read to it again."""
    for number in range(10, 14):
        await house.append(enqueue(number * 10, 4, partition=1 + number % 2, fences=[]))
    fences = [Fence(lease=f"partition/{number}") for number in (1, 2)]
    messages = recover(house.engine.provider, house.engine.epochs, RecoverRequest(fences=fences))
    await anext(messages)
    await house.append(enqueue(900, 1))
    assert [batch.entries.id for batch in _batches([each async for each in messages])] == [100, 110, 120, 130]
