"""What one gateway has said of partitions: that all is told that its consumers hold, and which queues they used."""

from __future__ import annotations

from collections.abc import Iterable

from services.queue.partitions.partition import Partition, State
from services.queue.partitions.registry import Registry
from services.rpc import queue_pb2 as pb


class Told:
    """It may know sooner than this process that a partition is here: then it says everything again."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._epochs: dict[int, int] = {}  # partition → epoch whose owner has heard everything
        self._used: dict[int, list[int]] = {}  # partition → its queues, until it is served
        self._unheard: set[int] = set()  # partitions that the frame at hand speaks of, and that are not here yet

    def begin(self) -> None:
        """Another frame is at hand."""
        self._unheard.clear()

    def not_heard(self, partition: int) -> None:
        """It was asked for, and is not here yet; the peer hears that."""
        self._epochs.pop(partition, None)
        self._unheard.add(partition)

    def hear(self, told: Iterable[pb.Told], now: int) -> set[int]:
        """At the end of a frame; gives the partitions here of which it has said all."""
        heard: set[int] = set()
        for each in told:
            if each.partition in self._unheard:
                continue
            self._epochs[each.partition] = each.epoch
            self._used[each.partition] = list(each.used)
            if (partition := self._registry.partitions.get(each.partition)) and self.has(partition):
                heard.add(partition.number)
                if partition.state is State.SERVING:
                    self.pass_on(partition, now)
        return heard

    def has(self, partition: Partition) -> bool:
        """Whether all has been said to this owner."""
        return self._epochs.get(partition.number) == partition.epoch

    def pass_on(self, partition: Partition, now: int) -> None:
        """Its queues hear that they have been used: the partition is served."""
        if self.has(partition):
            for queue_id in self._used.pop(partition.number, ()):
                if (queue := partition.queues.get(queue_id)) is not None:
                    queue.had_consumers(now)
