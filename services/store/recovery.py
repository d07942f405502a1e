"""What a new owner of a partition reads back: everything that was acknowledged to the former ones."""

from __future__ import annotations

from collections.abc import AsyncIterator

from services.common.errors import Fenced
from services.rpc.store_pb2 import Dequeue, EntryBatch, Floor, RecoveredBatch, RecoverRequest, Taken
from services.store.fencing import Epochs
from services.store.provider import Provider, StoredBatch


async def recover(provider: Provider, epochs: Epochs, request: RecoverRequest) -> AsyncIterator[RecoveredBatch]:
    """What is known of messages that may be resent, then entry batches by id.

    Raises Fenced unless the caller is the current owner.

    The epoch was on disk before its holder knew it, and so was every group that a former owner got in; so what is read
    now is complete, and only the caller adds to it.
    """
    if refused := epochs.refused([request.fence]):
        raise Fenced(f"{refused[0]} is not at epoch {request.fence.epoch}")
    floors, taken = await provider.floors(request.partition), await provider.taken(request.partition)
    yield RecoveredBatch(
        floors=[Floor(partition=request.partition, origin=origin, uid=uid) for origin, uid in floors],
        taken=[Taken(id=row.id, origin=row.origin, upto=row.upto, messages=row.messages) for row in taken],
    )
    async for batch in provider.batches(request.partition):
        yield _recovered(batch)


def _recovered(batch: StoredBatch) -> RecoveredBatch:
    number, partition, content, count, entries = batch.entry
    return RecoveredBatch(
        entries=EntryBatch(id=number, partition=partition, content=content, count=count, entries=entries),
        columns=batch.columns,
        dequeued=Dequeue.FromString(b"".join(batch.dequeues)).indexes,
        delivered_upto=batch.delivered_upto,
    )
