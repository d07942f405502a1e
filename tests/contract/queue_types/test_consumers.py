"""Which consumer gets which messages."""

from __future__ import annotations

import pytest

from services.rpc import queue_pb2 as pb
from tests.support.queue_machine import PROPERTIES, FakeLink, Machine, Make


def test_order_of_arrival(make: Make) -> None:
    """Messages of one priority are delivered in the order in which they came, waiting or not."""
    machine = make()
    machine.publish(3)
    machine.consumer()
    machine.publish(2)
    assert machine.link.uids() == [1, 2, 3, 4, 5]


def test_credit_in_messages(make: Make) -> None:
    """A consumer is sent no more messages than it has credit for."""
    machine = make()
    consumer = machine.consumer(messages=2)
    machine.publish(5)
    assert machine.link.uids() == [1, 2]
    machine.queue.credit(consumer, 2, 0, 0)
    assert machine.link.uids() == [3, 4]
    assert machine.queue.ready_count == 1


def test_credit_in_bytes(make: Make) -> None:
    """Bytes of credit, which properties take too, may be overdrawn by one message, and by no more."""
    machine = make()
    consumer = machine.consumer(size=10)
    machine.publish(5, body=bytes(6 - len(PROPERTIES)))
    assert machine.link.uids() == [1, 2]
    machine.queue.credit(consumer, 0, 3, 0)
    assert machine.link.uids() == [3]


def test_round_robin_by_message(make: Make) -> None:
    """Consumers of one priority take turns by message, also across runs."""
    machine = make()
    first, second, third = (machine.consumer() for _ in range(3))
    machine.publish(4)
    machine.publish(5)
    by_consumer: dict[int, list[int]] = {}
    for handle, uid, _ in machine.link.taken():
        by_consumer.setdefault(handle, []).append(uid)
    assert by_consumer == {first.handle: [1, 4, 7], second.handle: [2, 5, 8], third.handle: [3, 6, 9]}


def test_one_delivery_run_for_each_consumer(make: Make) -> None:
    """However many messages, each consumer's share of a run is one delivery run."""
    machine = make()
    machine.consumer()
    machine.consumer()
    machine.publish(100)
    assert [run.count for run in machine.link.deliveries.runs] == [50, 50]


def test_higher_priority_first(make: Make) -> None:
    """A consumer gets only what none of a higher priority with credit can take."""
    machine = make()
    low = machine.consumer(priority=-1)
    high = machine.consumer(priority=5, messages=3)
    machine.publish(5)
    assert [(handle, uid) for handle, uid, _ in machine.link.taken()] == [
        (high.handle, 1),
        (high.handle, 2),
        (high.handle, 3),
        (low.handle, 4),
        (low.handle, 5),
    ]


def test_no_ack_keeps_nothing(make: Make) -> None:
    """What is settled by being sent costs no memory and is not journalled."""
    machine = make(durable=True)
    machine.consumer(settled=True)
    machine.publish(3, persistent=True)
    assert machine.link.uids() == [1, 2, 3]
    assert machine.account.used == 0
    assert not machine.contents[0].entries


def test_exclusive(make: Make) -> None:
    """An exclusive consumer has the queue to itself, unless it only comes back after a change of owner."""
    machine = make()
    machine.consumer()
    machine.consumer(exclusive=True)
    assert machine.reason == pb.EXCLUSIVE_USE
    machine.consumer(exclusive=True, again=True)
    assert machine.reason == pb.NONE
    machine.consumer()
    assert machine.reason == pb.EXCLUSIVE_USE


def test_browsing(make: Make) -> None:
    """A browser sees each message once and takes none."""
    machine = make()
    machine.publish(3)
    browser = machine.consumer(browse=True, messages=2)
    assert machine.link.uids() == [1, 2]
    machine.queue.credit(browser, 5, 0, 0)
    machine.publish(1)
    assert machine.link.uids() == [3, 4]
    assert machine.queue.ready_count == 4


def test_browser_sees_what_comes_back_further_on(make: Make) -> None:
    """A browser that has not passed a place sees what is released there, though others took all before it."""
    machine = make()
    machine.publish(4)
    browser = machine.consumer(browse=True, messages=1)
    other = FakeLink()
    taker = machine.consumer(link=other, messages=3)
    machine.link.taken()
    machine.queue.settle(pb.RELEASE, [3], 0)
    assert taker.messages == 0
    machine.queue.credit(browser, 9, 0, 0)
    assert machine.link.uids() == [3, 4]


def test_auto_delete_after_the_last_consumer(make: Make) -> None:
    """A queue is to be deleted with its last consumer, not before it had one."""
    machine = make(auto_delete=True)
    first, second = machine.consumer(), machine.consumer()
    assert not machine.queue.detach(first, 0)
    assert machine.queue.detach(second, 0)


def test_auto_delete_after_consumers_of_a_former_owner(make: Make) -> None:
    """A queue that has had consumers is to be deleted when none of them comes again, and with the last that does."""
    machine = make(auto_delete=True)
    assert machine.queue.deadline() == 0
    machine.queue.had_consumers(1000)
    assert machine.context.timed == {1}
    deadline = machine.queue.deadline()
    assert deadline > 1000
    assert [machine.queue.use.deserted(now) for now in (deadline - 1, deadline)] == [False, True]
    consumer = machine.consumer()
    assert not machine.queue.deadline()
    assert not machine.queue.use.deserted(deadline)
    assert machine.queue.detach(consumer, deadline)


@pytest.mark.parametrize("told_first", [True, False])
def test_auto_delete_while_a_gateway_is_away(make: Make, told_first: bool) -> None:
    """Once consumers are attached again none is awaited: a stream that breaks later, and is back, costs no message."""
    machine = make(auto_delete=True)
    if told_first:
        machine.queue.had_consumers(1000)
    consumer = machine.consumer(now=1000)
    if not told_first:
        machine.queue.had_consumers(1000)
    later = 1 << 40
    machine.queue.detach(consumer, later)
    assert machine.queue.deadline() == 0
    assert not machine.queue.use.deserted(later)


def is_over(machine: Machine, now: int = 1) -> bool:
    """Whether the clock finds that the queue is to be deleted: it looks at those that expect it to."""
    looks = 1 in machine.context.timed and 0 < machine.queue.deadline() <= now
    assert machine.queue.use.is_over(now) is machine.queue.use.deserted(now)
    return looks and machine.queue.use.deserted(now)


@pytest.mark.parametrize("unused", ["no-links", "no-messages", "no-links-or-messages"])
def test_made_by_a_link_that_has_gone(make: Make, unused: str) -> None:
    """Goes at once when nothing keeps it, not while that link is there."""
    machine = make(unused=unused)
    machine.queue.detach(machine.consumer(), 0)
    machine.publish(1)
    assert machine.queue.picking.purge() == 1
    assert not is_over(machine)
    machine.made_alone()
    assert is_over(machine)


@pytest.mark.parametrize(
    ("unused", "kept"), [("no-links", True), ("no-messages", False), ("no-links-or-messages", True)]
)
def test_made_and_consumed(make: Make, unused: str, kept: bool) -> None:
    """Consumers keep it, except where messages alone do."""
    machine = make(unused=unused)
    consumer = machine.consumer()
    machine.made_alone()
    assert is_over(machine) is not kept
    assert machine.queue.detach(consumer, 0)


@pytest.mark.parametrize("unused", ["no-messages", "no-links-or-messages"])
@pytest.mark.parametrize("ends", ["accepted", "purged", "expired", "dropped"])
def test_made_and_full(make: Make, unused: str, ends: str) -> None:
    """Messages keep it, also those that somebody holds, until the last is gone, in whichever way."""
    machine = make(unused=unused, durable=True)
    machine.publish(2, ttl_ms=50)
    machine.made_alone()
    consumer = machine.consumer(messages=1)
    machine.queue.detach(consumer, 0)
    assert not is_over(machine)
    machine.queue.settle(pb.ACCEPT, [1], 0)
    assert not is_over(machine)
    if ends == "accepted":
        machine.consumer()
        machine.queue.settle(pb.ACCEPT, [2], 0)
    elif ends == "purged":
        machine.queue.picking.purge()
    elif ends == "dropped":
        machine.queue.picking.drop(list(machine.queue.entries()))
    else:
        machine.queue.expire(100)
    for each in list(machine.queue.consumers):
        machine.queue.detach(each, 100)
    assert is_over(machine, 100)


@pytest.mark.parametrize("unused", ["no-links", "no-messages", "no-links-or-messages"])
def test_made_under_a_former_owner(make: Make, unused: str) -> None:
    """Waits for consumers, and for what gateways hold, as long as they need to come again."""
    machine = make(unused=unused)
    machine.queue.use.out_of_sight(1000)
    machine.made_alone(1000)
    deadline = machine.queue.deadline()
    assert deadline > 1000
    assert [is_over(machine, now) for now in (deadline - 1, deadline)] == [False, True]


def test_made_without_consumers_goes_with_its_messages(make: Make) -> None:
    """What keeps a no-links queue are links alone."""
    machine = make(unused="no-links")
    machine.publish(1)
    machine.made_alone()
    assert is_over(machine)


def test_other_queues_stay_without_consumers(make: Make) -> None:
    """A queue without auto-delete stays, also after it had consumers."""
    machine = make()
    machine.queue.had_consumers(0)
    assert machine.queue.deadline() == 0
    assert not machine.queue.use.deserted(1 << 50)


def test_held_by_a_consumer_that_comes_back(make: Make) -> None:
    """What a consumer held under the former owner is its own again, and not delivered."""
    machine = make()
    machine.publish(4)
    machine.consumer(held=[1, 3])
    assert machine.link.uids() == [2, 4]
    machine.queue.giving_back.release_held_by(machine.link, 0)
    assert machine.queue.ready_count == 0
    assert machine.link.taken() == [(1, 1, True), (1, 2, True), (1, 3, True), (1, 4, True)]


def test_immediate(make: Make) -> None:
    """An immediate message is refused unless a consumer can take it now."""
    machine = make()
    assert machine.publish(2, immediate=True) == [(0, 2, pb.NO_CONSUMERS)]
    machine.consumer(messages=1)
    assert machine.publish(3, immediate=True) == [(1, 2, pb.NO_CONSUMERS)]
    assert machine.link.uids() == [3]
    assert machine.queue.ready_count == 0
