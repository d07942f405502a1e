"""Queues of two slots, as a router that spreads them would tell them."""

from __future__ import annotations

from typing import Final

import pytest

from services.common.clients.topology_mirror import TopologyMirror
from services.common.partition import partition_of
from services.common.topology.slots import SlotId, name_of
from services.rpc.router_pb2 import QueueDefinition, TopologyFrame

_SECOND: Final = 1 << 62


def second_slot(queue_id: int) -> SlotId:
    """The id of the slot that is told besides a queue's first."""
    return SlotId(queue_id | _SECOND)


def second(definition: QueueDefinition, partitions: int) -> QueueDefinition:
    """The definition of it."""
    told = QueueDefinition()
    told.CopyFrom(definition)
    told.slot, told.slot_id = 1, second_slot(definition.id)
    told.partition = partition_of(name_of(told), partitions)
    return told


def tell_second_slots(monkeypatch: pytest.MonkeyPatch, partitions: int) -> None:
    """Whoever watches the router of this process hears of two slots of each queue."""
    take = TopologyMirror.take

    def spread(mirror: TopologyMirror, frame: TopologyFrame) -> bool:
        frame.queues.extend([second(each, partitions) for each in frame.queues])
        frame.deleted_queues.extend([second_slot(each) for each in frame.deleted_queues])
        return take(mirror, frame)

    monkeypatch.setattr(TopologyMirror, "take", spread)
