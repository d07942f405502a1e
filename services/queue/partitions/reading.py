"""Partitions that are read back together, from the store's stream until each has ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from services.common.containment import contained
from services.common.topology.slots import SlotId
from services.queue.host import Host
from services.queue.machine.message import NOBODYS
from services.queue.machine.options import QueueOptions
from services.queue.partitions.partition import Partition, PartitionState
from services.queue.partitions.recovery import Contents, Recovery
from services.rpc.store_pb2 import RecoveredBatch, TakenColumns

_DO = "keep a copy of the data folder and report it: the batch is left out, and stays on disk"


class Reading:
    """What was read of the `partitions` that were asked for, and are not given away yet."""

    def __init__(self, host: Host, partitions: Sequence[Partition]) -> None:
        self._host = host
        self._asked = partitions
        self._contents = Contents(host.interned)
        self._left: dict[int, tuple[Partition, Recovery]] = {}
        self._begun = False
        self._in_messages = True  # many batches in each

    def take(self, message: RecoveredBatch) -> list[Partition]:
        """Takes the store's next message; gives the partitions that it ends."""
        if not self._begun:
            self._begin(message)
        elif self._in_messages:
            self._add(message.batches)
        else:
            self._add([message])
        return [self._left[number][0] for number in message.ended]

    @property
    def left(self) -> list[Partition]:
        """Those that were begun, and have not ended."""
        return [partition for partition, _ in self._left.values()]

    @property
    def refused(self) -> list[Partition]:
        """Those that another process has by now, when the first message was taken."""
        return [each for each in self._asked if each.number not in self._left] if self._in_messages else []

    def _begin(self, first: RecoveredBatch) -> None:
        self._begun, self._in_messages = True, bool(first.partitions)
        alone = self._asked[0].number  # of a store of a former release
        numbers = set(first.partitions) or {alone}
        self._left = {each.number: (each, self._new(each)) for each in self._asked if each.number in numbers}
        for floor in first.floors:
            self._left[floor.partition][1].known.recover_floor(floor.origin, floor.uid)
        for taken in first.taken:
            known = self._left[taken.partition if self._in_messages else alone][1].known
            known.recover_taken(taken.origin, TakenColumns.FromString(taken.messages))

    def _new(self, partition: Partition) -> Recovery:
        host, registry = self._host, self._host.registry

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

        return Recovery(host.account, partition.epoch, host.now(), options_of, traced)

    def _add(self, batches: Iterable[RecoveredBatch]) -> None:
        for batch in batches:
            try:
                self._left[batch.entries.partition][1].add(batch, self._contents)
            except Exception as fault:  # noqa: BLE001 - one record's, and the partition has others
                partition = batch.entries.partition
                contained("reading a batch of the journal", fault, do=_DO, partition=partition)

    async def end(self, partition: Partition) -> Recovery:
        """All of `partition` was read: it gets its entries, unless it was lost meanwhile."""
        _, recovery = self._left[partition.number]
        await self._host.exceed(recovery.highest)
        del self._left[partition.number]
        held = self._host.registry.partitions.get(partition.number) is partition
        if partition.state is not PartitionState.RECOVERING or not held:
            _forget(partition, recovery)
        else:
            partition.orphans, partition.notes = recovery.in_order(), recovery.notes
            partition.formers = recovery.formers
        return recovery

    def forget(self) -> None:
        """Lets go of all that was not given away."""
        for partition, recovery in self._left.values():
            _forget(partition, recovery)
        self._left.clear()


def _forget(partition: Partition, recovery: Recovery) -> None:
    for entries in recovery.entries.values():
        partition.context.forget(entries, NOBODYS, durable=False)
