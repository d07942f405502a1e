"""What new owners of partitions read back: everything that was acknowledged to the former ones.

Partitions that one process has got together it reads together: a publisher's messages are for many of them, and what
several have in common is read and sent once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Final

from services.common.errors import Fenced
from services.common.partition import partition_in
from services.rpc.store_pb2 import Dequeue, EntryBatch, Floor, RecoveredBatch, RecoverRequest, Taken
from services.store.chunks import in_turns
from services.store.fencing import Epochs
from services.store.provider import Provider, StoredBatch

_MESSAGE_BYTES: Final = 64 << 10  # some milliseconds of work for who reads it
_ROW_BYTES: Final = 64  # of a batch, besides what it has
# Partitions with so many batches, or so many times what the smallest has, are read together.
_FEW: Final = 512
_TIMES: Final = 4


async def recover(provider: Provider, epochs: Epochs, request: RecoverRequest) -> AsyncIterator[RecoveredBatch]:
    """What is known of messages that may be resent, then entry batches; those of a partition by id.

    Raises Fenced unless the caller is the current owner of one of them.

    The epoch was on disk before its holder knew it, and so was every group that a former owner got in; so what is read
    now is complete, and only the caller adds to it.
    """
    fences = request.fences or [request.fence]
    refused = epochs.refused(fences)
    held = [fence for fence in fences if fence.lease not in refused]
    if not held:
        raise Fenced(f"{refused[0]} is not at epoch {fences[0].epoch}")
    if request.fences:
        numbers = (partition_in(fence.lease) for fence in held)
        async for message in _together(provider, [number for number in numbers if number is not None]):
            yield message
        return
    yield await _known(provider, [request.partition])  # the caller is of a former release
    of = await provider.numbers([request.partition])
    async for batch in provider.batches(of[request.partition]):
        yield _recovered(batch, batch.columns)


async def _known(provider: Provider, partitions: Sequence[int]) -> RecoveredBatch:
    known = RecoveredBatch()
    for partition in partitions:
        floors, taken = await provider.floors(partition), await provider.taken(partition)
        known.floors.extend(Floor(partition=partition, origin=origin, uid=uid) for origin, uid in floors)
        known.taken.extend(
            Taken(id=row.id, partition=partition, origin=row.origin, upto=row.upto, messages=row.messages)
            for row in taken
        )
    return known


async def _together(provider: Provider, partitions: Sequence[int]) -> AsyncIterator[RecoveredBatch]:
    # What comes behind these is of an owner that has read its partition back already.
    numbers = await provider.numbers(partitions)
    known = await _known(provider, partitions)
    known.partitions.extend(partitions)
    known.ended.extend(partition for partition, some in numbers.items() if not some)
    yield known
    for tier in tiers({partition: len(some) for partition, some in numbers.items() if some}):
        async for message in _read(provider, {partition: numbers[partition] for partition in tier}):
            yield message


def tiers(sizes: Mapping[int, int]) -> Iterator[list[int]]:
    """Partitions that are read together, small ones first: none waits for one that has far more batches."""
    tier: list[int] = []
    most = 0
    for partition in sorted(sizes, key=sizes.__getitem__):
        if tier and sizes[partition] > most:
            yield tier
            tier = []
        if not tier:
            most = max(_FEW, _TIMES * sizes[partition])
        tier.append(partition)
    if tier:
        yield tier


async def _read(provider: Provider, numbers: Mapping[int, Sequence[int]]) -> AsyncIterator[RecoveredBatch]:
    """All of some partitions, many batches in a message; each partition is told to have ended as soon as it has."""
    last = {some[-1]: partition for partition, some in numbers.items()}
    message, size, content = RecoveredBatch(), 0, None
    async for batch in _batches(provider, numbers.values()):
        columns = b"" if batch.entry.content == content else batch.columns
        content = batch.entry.content
        message.batches.append(_recovered(batch, columns))
        if batch.entry.id in last:
            message.ended.append(last.pop(batch.entry.id))
        size += len(columns) + len(batch.entry.entries) + _ROW_BYTES
        if size >= _MESSAGE_BYTES:
            yield message
            message, size = RecoveredBatch(), 0
    message.ended.extend(last.values())
    yield message


async def _batches(provider: Provider, numbers: Iterable[Sequence[int]]) -> AsyncIterator[StoredBatch]:
    for some in in_turns(numbers):
        async for batch in provider.batches(some):
            yield batch


def _recovered(batch: StoredBatch, columns: bytes) -> RecoveredBatch:
    number, partition, content, count, entries = batch.entry
    return RecoveredBatch(
        entries=EntryBatch(id=number, partition=partition, content=content, count=count, entries=entries),
        columns=columns,
        dequeued=Dequeue.FromString(b"".join(batch.dequeues)).indexes if batch.dequeues else (),
        delivered_upto=batch.delivered_upto,
    )
