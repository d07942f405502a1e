"""Applies the topology's queue definitions to the partitions that this process owns."""

from __future__ import annotations

from services.common.topology.slots import slot_of
from services.queue.partitions.partition import PartitionState
from services.queue.partitions.registry import Registry
from services.rpc.router_pb2 import Forget, QueueDefinition


class Definitions:
    """Listens to the topology client."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def on_queue(self, definition: QueueDefinition) -> None:
        partition = self._registry.partitions.get(definition.partition)
        # A partition that is being read back makes its queues when it has been.
        if partition and partition.state is PartitionState.SERVING and slot_of(definition) not in partition.queues:
            self._registry.open(definition, partition)
        self._registry.unheard.heard(slot_of(definition))

    def on_queue_changed(self, definition: QueueDefinition) -> None:
        self._registry.change(definition)

    def on_queue_deleted(self, definition: QueueDefinition) -> None:
        self._registry.delete(definition)

    def on_forget(self, forget: Forget) -> None:
        """Nothing to do: no routes are kept here."""

    def on_reset(self) -> None:
        """Nothing to do: deleted queues are told one by one."""

    def on_virtual_host_deleted(self, name: str) -> None:
        """Nothing to do, as above."""

    def on_place(self) -> None:
        """The topology is complete: queues that are not in it do not exist."""
        self._registry.unheard.heard_all()
