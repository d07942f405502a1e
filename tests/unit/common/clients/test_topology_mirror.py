from __future__ import annotations

from services.common.clients.topology_mirror import TopologyMirror
from services.common.topology.slots import SlotId, SlotName
from services.rpc.router_pb2 import QueueDefinition, TopologyFrame

FIRST = QueueDefinition(id=7, virtual_host="/", name="q", partition=3)
SECOND = QueueDefinition(id=7, virtual_host="/", name="q", partition=4, slot=1, slot_id=8)


def test_slots_are_found_by_id_and_by_name() -> None:
    """Slots of one queue are told apart by both; a queue of an earlier router is its first slot."""
    mirror = TopologyMirror()
    mirror.take(TopologyFrame(version=1, snapshot=True, last=True, queues=[FIRST]))
    mirror.take(TopologyFrame(version=2, queues=[SECOND]))
    assert mirror.queues == {SlotId(7): FIRST, SlotId(8): SECOND}
    assert mirror.by_name == {SlotName("/", "q"): FIRST, SlotName("/", "q", 1): SECOND}


def test_a_slot_goes_alone() -> None:
    """One that is said to be deleted takes no other of its queue with it."""
    mirror = TopologyMirror()
    mirror.take(TopologyFrame(version=1, snapshot=True, last=True, queues=[FIRST, SECOND]))
    mirror.take(TopologyFrame(version=2, deleted_queues=[8]))
    assert mirror.queues == {SlotId(7): FIRST}
    assert mirror.by_name == {SlotName("/", "q"): FIRST}
    mirror.take(TopologyFrame(version=3, snapshot=True, last=True, queues=[SECOND]))
    assert mirror.by_name == {SlotName("/", "q", 1): SECOND}
