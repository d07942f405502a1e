"""Streams a partition's entries from the store into its queues-to-be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import cache
from typing import Protocol

from services.common.containment import contained
from services.common.ledger.place import LedgerPlace
from services.common.topology.slots import SlotId
from services.queue.host import Host
from services.queue.machine import turn
from services.queue.machine.message import NOBODYS
from services.queue.machine.options import QueueOptions
from services.queue.partitions.partition import Partition, PartitionState
from services.queue.partitions.recovery import Recovery
from services.rpc import store_pb2
from services.rpc.ledger_pb2 import RECOVERED, TAKEN_OVER

_DO = "keep a copy of the data folder and report it: the batch is left out, and stays on disk"


class Recoveries(Protocol):
    """The part of the store's client that reads partitions back."""

    def recover(self, partition: int, fence: store_pb2.Fence) -> AsyncIterator[store_pb2.RecoveredBatch]: ...


async def read_back(host: Host, store: Recoveries, partition: Partition) -> Recovery:
    """Gives the partition its entries, by queue. Raises what the store raises, and then leaves nothing behind."""
    registry = host.registry

    @cache
    def options_of(queue_id: SlotId) -> QueueOptions | None:
        definition = registry.definitions.get(queue_id)
        try:
            return registry.options(definition) if definition else None
        except Exception as fault:  # noqa: BLE001 - one definition's, and the partition has other queues
            contained("reading a queue's definition", fault, queue_id=queue_id)
            return None

    def traced(uid: int, queue_id: SlotId, context: bytes, time_ms: int, attempts: int) -> None:
        if definition := registry.definitions.get(queue_id):
            host.journeys.recovered(uid, definition, context, time_ms, attempts)

    recovery = Recovery(host.account, host.interned, partition.epoch, host.now(), options_of, traced)
    try:
        async for batch in store.recover(partition.number, partition.fence):
            try:
                recovery.add(batch)
            except Exception as fault:  # noqa: BLE001 - one record's, and the partition has others
                contained("reading a batch of the journal", fault, do=_DO, partition=partition.number)
        await host.exceed(recovery.highest)
    except BaseException:
        _forget(partition, recovery)
        raise
    if partition.state is not PartitionState.RECOVERING or registry.partitions.get(partition.number) is not partition:
        _forget(partition, recovery)
    else:
        partition.orphans, partition.notes = recovery.in_order(), recovery.notes
        partition.formers = recovery.formers
        partition.claimable_until = host.now() if recovery.formers else 0
        partition.wait_for_claims(host.now())
        if host.recorder.on:
            _tell(host, partition, recovery)
    return recovery


async def put_back(host: Host, partition: Partition) -> None:
    """Gives large queues what they had in parts, so that others have their turns; the rest is given as it is served."""
    large = [queue_id for queue_id, orphans in partition.orphans.items() if len(orphans) > turn.SCATTERED]
    for queue_id in large:
        if (definition := host.registry.definitions.get(queue_id)) and queue_id not in partition.queues:
            host.registry.open(definition, partition, in_parts=True)
            more = True
            while more and partition.state is PartitionState.RECOVERING:
                await asyncio.sleep(0)
                more = host.registry.put_back(definition, partition)
    partition.wait_for_claims(host.now())


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


def _forget(partition: Partition, recovery: Recovery) -> None:
    for entries in recovery.entries.values():
        partition.context.forget(entries, NOBODYS, durable=False)
