"""Sorted queues (Broker-J, section 2: sortKey)."""

from __future__ import annotations

from services.rpc import queue_pb2 as pb
from tests.support.queue_machine import Machine


def _make() -> Machine:
    return Machine("sorted", table={"qpid.queue_sort_key": "price"})


def test_by_the_text_of_a_header() -> None:
    """Lowest first, as text; those without the header before all others, and equals by arrival."""
    machine = _make()
    machine.publish_with("price", "b", "a", None, 10, "9", "a")
    machine.consumer()
    assert machine.link.uids() == [3, 4, 5, 2, 6, 1]


def test_back_to_its_place() -> None:
    """What comes back stands where its key says."""
    machine = _make()
    machine.publish_with("price", "a", "c")
    machine.consumer(messages=1)
    machine.link.taken()
    machine.publish_with("price", "b", "A")
    machine.queue.settle(pb.RELEASE, [1], 0)
    machine.consumer()
    assert machine.link.uids() == [4, 1, 3, 2]


def test_a_browser_sees_each_once() -> None:
    """In the queue's order; what comes at a place that it has passed is shown it all the same."""
    machine = _make()
    machine.publish_with("price", "b", "a")
    machine.consumer(browse=True, settled=True)
    machine.publish_with("price", "0")
    machine.queue.dispatch(0)
    assert machine.link.uids() == [2, 1, 3]
