"""Partitions that are read back together, from the store's stream until each has ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain

from services.common.containment import contained
from services.common.errors import Unavailable
from services.common.topology.slots import SlotId
from services.queue.host import Host
from services.queue.machine.message import NOBODYS
from services.queue.machine.options import QueueOptions
from services.queue.partitions.partition import Partition, PartitionState
from services.queue.partitions.recovery import Contents, NotSent, Recovery
from services.rpc.store_pb2 import Floor, RecoveredBatch, Taken, TakenColumns

_DO = "keep a copy of the data folder and report it: the batch is left out, and stays on disk"
_DO_TAKEN = "keep a copy of the data folder and report it: what it names may come a second time, if it is sent again"


class Reading:
    """What was read of the `partitions` that were asked for, and are not given away yet."""

    def __init__(self, host: Host, partitions: Sequence[Partition]) -> None:
        self._host = host
        self._asked = partitions
        self._contents = Contents(host.interned)
        self._left: dict[int, tuple[Partition, Recovery]] = {}
        self._begun = False
        self._in_messages = True  # many batches in each
        self._fault: Exception | None = None

    def take(self, message: RecoveredBatch) -> list[Partition]:
        """Takes the store's next message; gives the partitions that it ends.

        Raises NotSent where the stream lacks something, and each partition is to be read by itself.
        """
        if not self._begun:
            self._begin(message)
        elif self._in_messages:
            self._add(message.batches)
        else:
            self._add([message])
        return [self._left[number][0] for number in message.ended if number in self._left]

    def is_over(self) -> bool:
        """Whether all were given away, or lost meanwhile; of those that were lost it keeps nothing."""
        for partition in [each for each, _ in self._left.values() if not self._is_wanted(each)]:
            self._drop(partition)
        return self._begun and not self._left

    def at_end(self) -> list[Partition]:
        """Those that end with the stream: of a store of a former release, which says nothing of it.

        Raises Unavailable where it has ended before they had; or else what was wrong with one that has ended.
        """
        if not self.is_over() and self._in_messages:
            raise Unavailable("the store has ended its stream before all partitions had ended")
        if self._fault:
            raise self._fault
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
        rows: Iterable[Floor | Taken] = chain(first.floors, first.taken)
        for row in rows:
            number = row.partition if self._in_messages else alone
            try:
                self._add_known(number, row)
            except Exception as fault:  # noqa: BLE001 - one record's, and the partition has others
                contained("reading what may be sent again", fault, do=_DO_TAKEN, partition=number)

    def _add_known(self, number: int, row: Floor | Taken) -> None:
        known = self._left[number][1].known
        if isinstance(row, Floor):
            known.recover_floor(row.origin, row.uid)
        else:
            known.recover_taken(row.origin, TakenColumns.FromString(row.messages))

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
            self._contents.take(batch)
            number = batch.entries.partition
            if number not in self._left:
                continue  # lost meanwhile
            try:
                self._left[number][1].add(batch, self._contents)
            except Exception as fault:
                if isinstance(fault, NotSent) and len(self._asked) > 1:
                    raise  # by itself each is sent with what it is on, unless the disk has nothing of it
                contained("reading a batch of the journal", fault, do=_DO, partition=number)

    async def end(self, partition: Partition) -> Recovery | None:
        """All of `partition` was read: it gets its entries, unless it was lost meanwhile. None where that failed."""
        _, recovery = self._left[partition.number]
        try:
            await self._host.exceed(recovery.highest)
            if self._is_wanted(partition):
                partition.orphans, partition.notes = recovery.in_order(), recovery.notes
                partition.formers = recovery.formers
                del self._left[partition.number]
        except Exception as fault:  # noqa: BLE001 - one partition's, and others have ended, too
            self._fault = fault
            return None
        finally:
            self._drop(partition)
        return recovery

    def _is_wanted(self, partition: Partition) -> bool:
        held = self._host.registry.partitions.get(partition.number) is partition
        return held and partition.state is PartitionState.RECOVERING

    def _drop(self, partition: Partition) -> None:
        if found := self._left.pop(partition.number, None):
            _forget(*found)

    def forget(self) -> None:
        """Lets go of all that was not given away."""
        for partition, recovery in self._left.values():
            _forget(partition, recovery)
        self._left.clear()


def _forget(partition: Partition, recovery: Recovery) -> None:
    for entries in recovery.entries.values():
        partition.context.forget(entries, NOBODYS, durable=False)
