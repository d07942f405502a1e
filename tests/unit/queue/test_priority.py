"""x-max-priority."""

from __future__ import annotations

from services.rpc import queue_pb2 as pb
from tests.support.queue_machine import Machine


def test_highest_first() -> None:
    """What waits is delivered by priority, then by arrival; priorities above the highest count as the highest."""
    machine = Machine("priority", max_priority=5)
    for priority in (0, 3, 5, 200, 3):
        machine.publish(1, priority=priority)
    machine.consumer()
    assert machine.link.uids() == [3, 4, 2, 5, 1]


def test_fewer_levels_than_priorities() -> None:
    """Three levels of Broker-J's tell the priorities around the middle one apart (queue.priorities, section 2)."""
    machine = Machine("priority", max_priority=2, qpid_lowest_priority=3)
    for priority in (0, 3, 4, 5, 9):
        machine.publish(1, priority=priority)
    machine.consumer()
    assert machine.link.uids() == [4, 5, 3, 1, 2]


def test_requeued_within_its_level() -> None:
    """What comes back stands before later ones of its own priority, and behind higher ones."""
    machine = Machine("priority", max_priority=5)
    machine.publish(2, priority=1)
    machine.consumer(messages=1)
    machine.publish(1, priority=2)
    machine.link.taken()
    machine.queue.settle(pb.RELEASE, [1], 0)
    machine.consumer()
    assert machine.link.uids() == [3, 1, 2]
