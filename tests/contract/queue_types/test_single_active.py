"""Queues with x-single-active-consumer, under one owner and the next."""

from __future__ import annotations

from services.rpc import queue_pb2 as pb
from tests.support.queue_machine import FakeLink, Machine, Make


def handles(machine: Machine) -> list[int]:
    """The consumers that were sent something since the last call, in order."""
    return [handle for handle, _, _ in machine.link.taken()]


def test_one_after_the_other(make: Make) -> None:
    """The first gets everything, and the next by age when it is gone; their gateways are told which it is."""
    machine = make(single_active_consumer=True)
    first, second, third = machine.consumer(messages=1), machine.consumer(), machine.consumer()
    machine.publish(3)
    assert handles(machine) == [first.handle]
    machine.queue.detach(second, 0)
    machine.queue.detach(first, 0)
    assert handles(machine) == [third.handle] * 2
    assert [handle for handle, _ in machine.link.active] == [first.handle, third.handle]


def test_it_stays_the_one_under_the_next_owner(make: Make) -> None:
    """Whichever comes again first there; it need not be the oldest, when that was away for a while."""
    machine = make(single_active_consumer=True, epoch=2)
    machine.consumer(again=True, age=1)
    active = machine.consumer(again=True, age=2, activated=4, messages=1)
    machine.publish(3)
    assert handles(machine) == [active.handle]
    machine.consumer(again=True, age=3, activated=3)
    machine.publish(1)
    assert handles(machine) == []


def test_the_next_by_age_under_the_next_owner(make: Make) -> None:
    """Ages are those that the former owner gave; a new consumer is younger than all of them, also than late ones."""
    machine = make(single_active_consumer=True, epoch=2)
    new, third, second = machine.consumer(), machine.consumer(again=True, age=3), machine.consumer(again=True, age=2)
    machine.publish(1)
    machine.queue.detach(second, 0)
    machine.publish(1)
    machine.queue.detach(third, 0)
    machine.publish(1)
    assert handles(machine) == [second.handle, third.handle, new.handle]


def test_numbers_grow_from_owner_to_owner(make: Make) -> None:
    """What one owner says of age and activity counts for the next one too."""
    machine = make(single_active_consumer=True, epoch=7)
    consumer = machine.consumer()
    machine.publish(1)
    assert 6 << 32 < consumer.age < consumer.activated < 8 << 32
    assert machine.link.active == [(consumer.handle, consumer.activated)]
    assert not make(epoch=7).consumer().age


def test_a_holder_is_active_when_no_owner_named_one(make: Make) -> None:
    """An older owner did not name the active one: then it was the consumer with deliveries of its."""
    machine = make(single_active_consumer=True)
    machine.consumer(again=True)
    holder = machine.consumer(again=True, holds=True)
    machine.publish(1)
    assert handles(machine) == [holder.handle]


def test_its_gateway_is_away_for_a_moment(make: Make) -> None:
    """It is waited for as long as for what it holds, so that no other gets what follows, and is active again."""
    machine = make(single_active_consumer=True)
    broken = FakeLink()
    active = machine.consumer(link=broken, messages=1)
    other = machine.consumer()
    machine.publish(3)
    broken.broken = True
    machine.queue.detach(active, 0)
    assert handles(machine) == []
    again = machine.consumer(again=True, age=active.age, activated=active.activated, messages=1)
    machine.publish(1)
    assert handles(machine) == [again.handle]
    machine.queue.detach(again, 0)
    assert handles(machine) == [other.handle] * 2


def test_its_gateway_stays_away(make: Make) -> None:
    """Then the next gets everything, in order."""
    machine = make(single_active_consumer=True)
    broken = FakeLink()
    active = machine.consumer(link=broken, messages=1)
    machine.consumer()
    machine.publish(3)
    broken.broken = True
    machine.queue.detach(active, 0)
    broken.over = True
    machine.queue.giving_back.release_held_by(broken, 0)
    machine.queue.dispatch(0)
    assert machine.link.uids() == [1, 2, 3]


def test_a_browser_is_never_the_one(make: Make) -> None:
    """It takes nothing, however old it is."""
    machine = make(single_active_consumer=True)
    machine.consumer(browse=True, messages=0)
    consumer = machine.consumer()
    machine.publish(1)
    assert handles(machine) == [consumer.handle]
    machine.queue.settle(pb.ACCEPT, [1], 0)
    assert machine.account.used == 0
