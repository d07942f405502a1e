"""Broker-J's PRODUCER_FLOW_CONTROL: publishers are held back from a queue that has too much, until much has gone."""

from __future__ import annotations

from services.rpc import queue_pb2 as pb
from tests.support.queue_machine import Make

FLOW = "producer-flow-control"


def test_by_messages(make: Make) -> None:
    """More than it wants comes in all the same; they are held back until four fifths of that are left."""
    machine = make(max_length=10, overflow=FLOW, dead_letter_exchange="dlx")
    flow = machine.queue.flow
    assert flow is not None
    assert machine.publish(10) == []
    assert not flow.is_overfull()
    assert machine.publish(5) == []
    assert flow.is_overfull()
    consumer = machine.consumer(messages=6)
    assert (flow.is_overfull(), machine.queue.ready_count) == (True, 9)
    machine.queue.credit(consumer, 1, 0, 0)
    assert not flow.is_overfull()
    machine.publish(2)
    assert not flow.is_overfull()
    machine.queue.settle(pb.RELEASE, machine.link.uids()[:1], 0)
    assert flow.is_overfull()
    assert machine.dead() == []


def test_by_bytes(make: Make) -> None:
    """Those of bodies, and until as many are left as is said."""
    machine = make(table={"x-qpid-capacity": 100, "x-qpid-flow-resume-capacity": 30})
    flow = machine.queue.flow
    assert flow is not None
    machine.publish(11, body=bytes(10))
    for taken, is_overfull in ((7, True), (1, False)):
        assert flow.is_overfull()
        assert machine.queue.picking.purge(taken) == taken
        assert flow.is_overfull() == is_overfull


def test_to_the_byte(make: Make) -> None:
    """A share that is no round number is as it was said; one above all of it, as older queues have, is all of it."""
    for resumes, left in ((7, 7), (99, 25)):
        table = {"x-max-length-bytes": 25, "x-overflow": FLOW, "x-qpid-flow-resume-capacity": resumes}
        machine = make(table=table)
        flow = machine.queue.flow
        assert flow is not None
        machine.publish(26, body=b"x")
        assert flow.is_overfull()
        machine.queue.picking.purge(26 - left - 1)
        assert flow.is_overfull()
        machine.queue.picking.purge(1)
        assert (flow.is_overfull(), machine.queue.ready_count) == (False, left)


def test_others(make: Make) -> None:
    """A queue with another policy holds no publisher back."""
    for table in ({}, {"x-max-length": 1}, {"maximumQueueDepthMessages": 1}):
        assert make(table=table).queue.flow is None
