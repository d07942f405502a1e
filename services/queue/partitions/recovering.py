"""Streams the entries of partitions from the store into their queues-to-be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Protocol

from services.common.containment import contained
from services.common.ledger.place import LedgerPlace
from services.common.topology.slots import SlotId
from services.queue.host import Host
from services.queue.journal.known import Known
from services.queue.machine import turn
from services.queue.machine.features.annotated import FEATURE as ANNOTATED
from services.queue.partitions.partition import Partition, PartitionState
from services.queue.partitions.reading import Reading
from services.queue.partitions.recovery import Recovery
from services.rpc import store_pb2
from services.rpc.ledger_pb2 import RECOVERED, TAKEN_OVER


class Recoveries(Protocol):
    """The part of the store's client that reads partitions back."""

    def recover(self, fences: Sequence[store_pb2.Fence]) -> AsyncIterator[store_pb2.RecoveredBatch]: ...


async def read_back(
    host: Host, store: Recoveries, partitions: Sequence[Partition]
) -> AsyncGenerator[tuple[Partition, Known | None], None]:
    """Gives partitions their entries, by queue, and each as soon as it has all; None for one that another process has.

    Raises what the store raises, and then leaves nothing behind of those that it did not give; Unavailable where the
    store has said nothing of the end of some; and what was wrong with one of them, when it has given the others. A
    store of a former release reads one: the others are not given.
    """
    reading, begun = Reading(host, partitions), False
    try:
        async for message in store.recover([partition.fence for partition in partitions]):
            if reading.is_over():
                break
            ended = reading.take(message)
            if not begun:
                begun = True
                for partition in reading.refused:
                    yield partition, None
            for partition in ended:
                if recovery := await reading.end(partition):
                    yield partition, _given(host, partition, recovery)
            await asyncio.sleep(0)  # what has come already is given without a wait, and leases have to be renewed
        for partition in reading.at_end():
            if recovery := await reading.end(partition):
                yield partition, _given(host, partition, recovery)
        reading.at_end()
    finally:
        reading.forget()


def _given(host: Host, partition: Partition, recovery: Recovery) -> Known:
    partition.claimable_until = host.now() if partition.formers else 0
    partition.wait_for_claims(host.now())
    if host.recorder.on and partition.state is PartitionState.RECOVERING:
        try:
            _tell(host, partition, recovery)
        except Exception as fault:  # noqa: BLE001 - the partition has its entries, and is served
            contained("recording what was read back", fault, partition=partition.number)
    return recovery.known


async def put_back(host: Host, partition: Partition) -> None:
    """Gives large queues what they had in parts, so that others have their turns, and those with annotations too; the
    rest is given as it is served.
    """
    large = [queue_id for queue_id in partition.orphans if _takes_long(partition, queue_id)]
    for queue_id in large:
        if (definition := host.registry.definitions.get(queue_id)) and queue_id not in partition.queues:
            host.registry.open(definition, partition, in_parts=True)
            more = True
            while more and partition.state is PartitionState.RECOVERING:
                await asyncio.sleep(0)
                more = host.registry.put_back(definition, partition)
    partition.wait_for_claims(host.now())


def _takes_long(partition: Partition, queue_id: SlotId) -> bool:
    if len(partition.orphans[queue_id]) > turn.SCATTERED:
        return True
    return any(note.feature == ANNOTATED for note, _ in partition.notes.get(queue_id, ()))


def _tell(host: Host, partition: Partition, recovery: Recovery) -> None:
    """Records what was read back. Queues that the topology does not know yet have no name in the ledger.

    The last row says that this is everything: messages of the former owner that no row names are lost.
    """
    here = LedgerPlace(partition=partition.number, epoch=partition.epoch)
    for (queue_id, reason), uids in recovery.recovered.items():
        definition = host.registry.definitions.get(queue_id)
        if not uids:
            continue
        if definition:
            partition.context.record_of(host.registry.options(definition)).recovered(uids, reason)
        else:
            host.recorder.record(RECOVERED, here, uids, reason=reason)
    if partition.epoch > 1:  # epoch 1 has no former owner
        host.recorder.note(TAKEN_OVER, here)
