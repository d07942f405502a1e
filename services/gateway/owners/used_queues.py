"""Auto-delete queues that have had a consumer of this gateway: they are deleted with their last consumer.

The last consumer may end while its queue has no owner, or the owner may go down before it has deleted the queue: so
each new owner is told which queues these are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from services.common.topology.slots import SlotId, slot_of

if TYPE_CHECKING:
    from services.rpc.router_pb2 import QueueDefinition


class UsedQueues:
    """`queues` are all queues of the topology."""

    def __init__(self, queues: Mapping[SlotId, QueueDefinition]) -> None:
        self._queues = queues
        self._used: dict[int, dict[SlotId, None]] = {}  # by partition

    def add(self, queue_id: SlotId) -> None:
        """A consumer was attached."""
        definition = self._queues.get(queue_id)
        if definition and definition.auto_delete:
            self._used.setdefault(definition.partition, {})[queue_id] = None

    def forget(self, definition: QueueDefinition) -> None:
        """The queue was deleted."""
        if used := self._used.get(definition.partition):
            used.pop(slot_of(definition), None)

    def of(self, partition: int) -> list[SlotId]:
        """The queues of a partition."""
        return list(self._used.get(partition, ()))
