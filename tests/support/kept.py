"""A store with one of everything that a provider keeps, and all of that as a value to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from services.rpc.store_pb2 import (
    Delivered,
    EntryBatch,
    Fence,
    JournalFrame,
    PutRecordsRequest,
    Record,
    Taken,
    TakenColumns,
)
from services.store.compaction import Compaction
from tests.support.read_back import batches_of
from tests.support.store_house import dequeue, enqueue

if TYPE_CHECKING:
    from services.store.provider import Provider
    from tests.support.store_house import House

PARTITIONS = (1, 2)


async def write_everything(house: House) -> None:
    """Of two partitions; lets time pass so that there is some to keep."""
    house.run(120)
    epochs = await house.acquire("partition/1", "partition/2", "router")
    fences = {name: Fence(lease=name, epoch=epoch) for name, epoch in epochs.items()}
    one, two = fences["partition/1"], fences["partition/2"]
    await house.append(enqueue(10, 4, fences=[one]))
    await house.append(dequeue(10, 1, 2, fences=[one]))
    await house.append(JournalFrame(fences=[one], delivered=[Delivered(batch=10, upto=2)]))
    await house.append(enqueue(20, 3, 2, fences=[two]))
    await house.append(enqueue(30, 8, fences=[one]))
    columns = TakenColumns(queue_id=[1], first=[10], count=[1]).SerializeToString()
    taken = Taken(id=1, partition=1, origin=7, upto=40, messages=columns)
    await house.append(JournalFrame(fences=[one], taken=[taken]))
    await house.append(JournalFrame(entries=[EntryBatch(id=99, partition=1, content=98, count=1)]), writer=5)
    await house.append(enqueue(40, 1, fences=[two], transaction=1 << 63 | 1), writer=6)
    await house.engine.transactions.commit(1 << 63 | 1, 1)
    await house.engine.transactions.resolve(2)
    await house.engine.origins.allocate()
    puts = [Record(kind="user", key="a", value=b"{}"), Record(kind="queue", key="q", value=b"[]")]
    await house.engine.records.put(PutRecordsRequest(puts=puts))
    await _blank(house)


async def _blank(house: House) -> None:
    await house.append(dequeue(30, *range(1, 8)))
    work = Compaction(house.engine._live, house.engine._live.contents[30])
    await work.read(house.provider)
    house.engine._committer.submit(work)
    await house.engine.origins.allocate()


async def everything(provider: Provider) -> dict[str, Any]:
    """What a store would read back, by what it is; ages are left out."""
    batches = {number: [batch async for batch in batches_of(provider, number)] for number in PARTITIONS}
    return {
        "live": sorted(
            (row.id, row.partition, row.content, row.total, row.size, row.whole) for row in await provider.live()
        ),
        "dequeues": {row.id: set(row.dequeues) for row in await provider.live()},
        "batches": [
            (batch.entry, batch.columns, sorted(batch.dequeues)) for each in batches.values() for batch in each
        ],
        "delivered": [batch.delivered_upto for each in batches.values() for batch in each],
        "floors": [sorted(await provider.floors(number)) for number in PARTITIONS],
        "taken": await provider.taken(1),
        "outcomes": sorted((row.transaction, row.committed) for row in await provider.outcomes()),
        "writers": await provider.writers(),
        "refusals": await provider.refusals(),
        "leases": sorted(await provider.leases()),
        "origin": await provider.last_origin(),
        "running": await provider.running(),
        "records": sorted(await provider.records()),
    }
