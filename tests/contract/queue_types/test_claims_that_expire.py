"""What clients hold, and expires."""

from __future__ import annotations

import pytest

from services.rpc import queue_pb2 as pb
from tests.support.queue_machine import Make


@pytest.mark.parametrize("claimed", [1, 2, 3])
def test_what_expires_comes_back(make: Make, claimed: int) -> None:
    """At its place, wherever that is, and with the time that it had: what was noted of it may be there yet."""
    machine = make()
    machine.publish(3, ttl_ms=50)
    machine.consumer(held=[claimed], again=True, messages=0)
    machine.queue.settle(pb.RESTORE, [claimed], 0)
    assert (machine.queue.ready_count, machine.queue.deadline()) == (3, 50)
    machine.consumer()
    assert machine.link.uids() == [1, 2, 3]


@pytest.mark.parametrize("claimed", [1, 2, 3])
def test_given_back_before_what_expires_comes(make: Make, claimed: int) -> None:
    """What was given back before it came again is delivered as what was had before, with the time that it has."""
    machine = make()
    machine.consumer(held=[claimed], again=True, messages=0)
    machine.queue.settle(pb.RELEASE, [claimed], 0)
    machine.publish(3, ttl_ms=50)
    assert (machine.queue.ready_count, machine.queue.deadline()) == (3, 50)
    machine.consumer()
    assert [(uid, again) for _, uid, again in machine.link.taken()] == [(uid, uid == claimed) for uid in (1, 2, 3)]
