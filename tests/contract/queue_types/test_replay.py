"""Consumers that want only what came lately, of queues of every type (Broker-J, replay period)."""

from __future__ import annotations

import pytest

from services.queue.machine.delivery.interest import Interest
from services.rpc import queue_pb2 as pb
from tests.support.queue_machine import FakeLink, Make


@pytest.mark.parametrize("browse", [True, False])
def test_what_came_since(make: Make, *, browse: bool) -> None:
    """And what comes; what is older stays for others."""
    machine, lately = make(), FakeLink()
    for now in (1000, 2000, 3000):
        machine.publish(2, now=now)
    machine.consumer(
        link=lately,
        browse=browse,
        interest=Interest(None, since=2000, new=machine.queue.picking.next_position),
        now=3000,
    )
    machine.publish(now=4000)
    assert lately.uids() == [3, 4, 5, 6, 7]
    machine.consumer()
    assert machine.link.uids() == list(range(1, 8)) if browse else [1, 2]


def test_what_comes_from_now_on(make: Make) -> None:
    """Of messages of one moment those that stand behind a place."""
    machine, lately = make(), FakeLink()
    machine.publish(2, now=1000)
    machine.consumer(
        link=lately, interest=Interest(None, since=1 << 62, new=machine.queue.picking.next_position), now=1000
    )
    machine.publish(2, now=1000)
    assert lately.uids() == [3, 4]


def test_what_comes_back(make: Make) -> None:
    """Is as old as before."""
    machine, lately = make(), FakeLink()
    held = machine.consumer(messages=2)
    machine.publish(now=1000)
    machine.publish(now=2000)
    machine.consumer(
        link=lately, interest=Interest(None, since=2000, new=machine.queue.picking.next_position), now=2000
    )
    machine.queue.detach(held, 2000)
    machine.queue.settle(pb.RELEASE, [1, 2], 3000)
    assert (lately.uids(), machine.queue.ready_count) == ([2], 1)
