"""Recovery of a large partition."""

from __future__ import annotations

import asyncio

from services.rpc.store_pb2 import RecoverRequest
from services.store.recovery import recover
from tests.support.store_house import House, dequeue, enqueue

BATCHES = 1000
SIZE = 1000


async def test_a_million_entries(house: House) -> None:
    """A million entries come back after a restart, complete and in order, while commits go on."""
    for start in range(0, BATCHES, 100):
        frames = [enqueue(number * SIZE, SIZE) for number in range(start + 1, start + 101)]
        gone = [dequeue(number * SIZE, *range(number % 5)) for number in range(start + 1, start + 101)]
        await asyncio.gather(*map(house.append, frames))
        await asyncio.gather(*map(house.append, gone))
    await house.restart()
    alive = 0
    last = -1
    commits = 0
    batches = recover(house.engine.provider, house.engine.epochs, RecoverRequest(partition=1))
    assert [floor.uid for floor in (await anext(batches)).floors] == [BATCHES * SIZE]
    async for batch in batches:
        assert batch.entries.id > last
        last = batch.entries.id
        assert sorted(batch.dequeued) == list(range(batch.entries.id // SIZE % 5))
        alive += batch.entries.count - len(batch.dequeued)
        if batch.entries.id % (100 * SIZE) == 0:
            await asyncio.wait_for(house.append(enqueue(batch.entries.id + 1, 1, partition=2), writer=9), 1)
            commits += 1
    assert alive == BATCHES * SIZE - 2 * BATCHES
    assert commits == 10
