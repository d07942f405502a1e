"""Queues with consumers on one stream: what is published to them may well come back on it."""

from __future__ import annotations

from collections.abc import Iterable

from services.common.topology.slots import SlotId
from services.rpc import queue_pb2 as pb


class Consumed:
    """A consumer counts from when it is attached until it is detached, refused or cancelled."""

    def __init__(self) -> None:
        self._queues: dict[int, SlotId] = {}  # by consumer
        self._counts: dict[SlotId, int] = {}  # of consumers

    def attach(self, consumer: pb.AttachConsumer) -> None:
        """It is sent to the queue process. One that is stray is no consumer."""
        if consumer.stray or consumer.consumer in self._queues:
            return
        queue_id = self._queues[consumer.consumer] = SlotId(consumer.queue_id)
        self._counts[queue_id] = self._counts.get(queue_id, 0) + 1

    def detach(self, consumer: int) -> None:
        """It ends, if it has not ended before."""
        queue_id = self._queues.pop(consumer, None)
        if queue_id is None:
            return
        self._counts[queue_id] -= 1
        if not self._counts[queue_id]:
            del self._counts[queue_id]

    def hear(self, frame: pb.QueueFrame) -> None:
        """The queue process may have refused some, or ended them."""
        for answer in frame.attached:
            if answer.reason != pb.NONE:
                self.detach(answer.consumer)
        for end in frame.cancelled:
            self.detach(end.consumer)

    def has_one_of(self, queue_ids: Iterable[SlotId]) -> bool:
        """Whether one of these queues has a consumer."""
        return not self._counts.keys().isdisjoint(queue_ids)
