"""For which partitions one gateway has reported all that its consumers hold, and which queues they used."""

from __future__ import annotations

from collections.abc import Iterable

from services.common.topology.slots import SlotId, slots_in
from services.queue.partitions.partition import Partition, PartitionState
from services.queue.partitions.registry import Registry
from services.rpc import queue_pb2 as pb


class PeerReports:
    """The gateway may know sooner than this process that a partition is here: then it reports everything again."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._epochs: dict[int, int] = {}  # partition → epoch for which everything was reported
        self._used: dict[int, list[SlotId]] = {}  # partition → its queues, until it is served
        self._unheard: set[int] = set()  # partitions that the frame at hand speaks of, and that are not here yet

    def begin(self) -> None:
        """Another frame begins."""
        self._unheard.clear()

    def not_heard(self, partition: int) -> None:
        """The frame asks for a partition that is not here yet; the peer is answered so."""
        self._epochs.pop(partition, None)
        self._unheard.add(partition)

    def hear(self, told: Iterable[pb.Told], now: int) -> set[int]:
        """Called at the end of a frame; gives the partitions here for which the gateway has reported everything."""
        heard: set[int] = set()
        for each in told:
            if each.partition in self._unheard:
                continue
            self._epochs[each.partition] = each.epoch
            self._used[each.partition] = list(slots_in(each.used))
            if (partition := self._registry.partitions.get(each.partition)) and self.has(partition):
                heard.add(partition.number)
                if partition.state is PartitionState.SERVING:
                    self.pass_on(partition, now)
        return heard

    def has(self, partition: Partition) -> bool:
        """Whether everything has been reported to this term of the partition."""
        return self._epochs.get(partition.number) == partition.epoch

    def pass_on(self, partition: Partition, now: int) -> None:
        """The partition is served: tells its queues that they have had consumers."""
        if self.has(partition):
            for queue_id in self._used.pop(partition.number, ()):
                if (queue := partition.queues.get(queue_id)) is not None:
                    queue.had_consumers(now)
