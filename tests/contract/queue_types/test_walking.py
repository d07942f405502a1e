"""A queue is looked at in portions while it goes on: what was there all the time is seen once, in order."""

from __future__ import annotations

import random

import pytest

from services.common import plugins
from services.queue.machine.entry import Entry
from services.queue.machine.walk import Walk
from services.rpc import queue_pb2 as pb
from tests.contract.queue_types.conftest import NEEDS
from tests.contract.queue_types.test_choosing import wanting
from tests.support.messages import facts
from tests.support.queue_machine import FakeLink, Machine, Make


def seen(walk: Walk, most: int = 3) -> list[int]:
    """All the rest."""
    found: list[int] = []
    for _ in range(1000):
        found += [entry.message.uid for entry in walk.some(most)]
        if walk.over:
            return found
    pytest.fail("it never ends")


def test_all(make: Make) -> None:
    """What waits, in the order in which it would leave; what somebody holds, before it, where that is asked for."""
    machine = make()
    machine.publish_mixed([facts("amq.direct", priority=n % 3) for n in range(10)])
    machine.queue.get(machine.link, 0, settled=False)
    held = list(machine.queue.unsettled)
    waiting = seen(machine.queue.picking.walk(held=False))
    assert seen(machine.queue.picking.walk(held=True)) == held + waiting
    machine.consumer()
    assert machine.link.uids() == waiting


@pytest.mark.parametrize("most", [1, 4, 5, 100])
def test_empty_places(make: Make, most: int) -> None:
    """Many next to each other, among what came back: they hold nobody up, however little is looked at at once."""
    machine = make()
    machine.publish_mixed([facts("amq.direct")._replace(ttl_ms=10 if 2 <= n < 8 else None) for n in range(12)])
    consumer = machine.consumer()
    taken = machine.link.uids()
    machine.queue.detach(consumer, 0)
    machine.queue.settle(pb.RELEASE, taken, 1)
    machine.queue.expire(20)
    assert seen(machine.queue.picking.walk(held=True), most) == [1, 2, 9, 10, 11, 12]


@pytest.mark.parametrize("most", [1, 2, 100])
def test_what_was_taken_out_and_came_back(make: Make, most: int) -> None:
    """Again and again: its places are empty but for one, and there it is seen."""
    machine = make()
    machine.publish(3)
    for _ in range(3):
        machine.queue.picking.take(machine.queue.picking.walk(held=False).some(10)[1:2], FakeLink())
        machine.queue.settle(pb.RESTORE, [2], 0)
    assert seen(machine.queue.picking.walk(held=False), most) == [1, 2, 3]


@pytest.mark.parametrize("most", [1, 2, 3, 4, 100])
def test_what_was_aside_comes_behind_the_others(make: Make, most: int) -> None:
    """It does so beside them: that they are at an end is no reason to look at them again."""
    machine = make(table={"holdOnPublishEnabled": True})
    early = facts("amq.direct")._replace(not_before=10)
    machine.publish_mixed([facts("amq.direct")] * 6)
    machine.publish_mixed([early] * 3)
    machine.queue.expire(20)
    machine.queue.dispatch(20)
    assert seen(machine.queue.picking.walk(held=True), most) == list(range(1, 10))


def test_what_comes_aside_meanwhile(make: Make) -> None:
    """What was looked at and came back is not looked at again; what stood there then is, though its time has come."""
    machine = make(table={"holdOnPublishEnabled": True}, delayed_retry_type="all", delayed_retry_min=100)
    early = facts("amq.direct")._replace(not_before=10)
    machine.publish_mixed([facts("amq.direct"), early, *[facts("amq.direct")] * 4])
    walk, found = machine.queue.picking.walk(held=False), list[int]()
    while not found:  # of each level there is a look
        found += [entry.message.uid for entry in walk.some(4)]
    machine.consumer(messages=1)
    machine.queue.settle(pb.RELEASE, machine.link.uids(), 0)
    machine.queue.expire(20)
    machine.queue.dispatch(20)
    assert found + seen(walk) == [1, 3, 4, 5, 6, 2]


def test_some_are_taken_and_dropped(make: Make) -> None:
    """Wherever they stand; they are the link's, or gone, and the others are as they were."""
    machine, link = make(durable=True), FakeLink()
    machine.publish(6, persistent=True)
    walk, entries = machine.queue.picking.walk(held=False), list[Entry]()
    while not walk.over:
        entries += walk.some(10)
    taken = machine.queue.picking.take([entries[1], entries[4]], link)
    assert [entry.message.uid for entry in taken] == [2, 5]
    assert all(machine.queue.unsettled[entry.message.uid] is entry and entry.holder is link for entry in taken)
    assert [entry.message.uid for entry in machine.queue.picking.drop([entries[0], entries[1], entries[5]])] == [1, 6]
    assert sum(map(len, machine.draft.dequeues.values())) == 2
    machine.queue.settle(pb.RESTORE, [2, 5], 0)
    assert seen(machine.queue.picking.walk(held=False)) == [2, 3, 4, 5]
    machine.consumer()
    assert machine.link.taken() == [(1, uid, False) for uid in (2, 3, 4, 5)]


@pytest.mark.parametrize("kind", plugins.names("queue_types"))
@pytest.mark.parametrize("seed", range(40))
def test_while_others_come_and_go(kind: str, seed: int) -> None:
    """Newcomers, gets, requeues, and consumers that choose: what stays is seen once, nothing twice, nothing new."""
    chance, machine = random.Random(seed), Machine(kind, **NEEDS.get(kind, {}))
    machine.publish_mixed([facts("amq.direct", priority=chance.randrange(4)) for _ in range(60)])
    walk, found, gone, chooser = machine.queue.picking.walk(held=False), list[int](), set[int](), None
    while not walk.over:
        found += [entry.message.uid for entry in walk.some(chance.randint(1, 7))]
        match chance.randrange(5):
            case 0:
                machine.publish(3, priority=chance.randrange(4))
            case 1 if (got := machine.queue.get(machine.link, 0, settled=False)) is not None:
                gone.add(got.message.uid)
            case 2 if machine.queue.unsettled:
                machine.queue.settle(pb.RELEASE, [chance.choice(list(machine.queue.unsettled))], 0)
            case 2:
                waiting = machine.queue.picking.walk(held=False).some(60)
                taken = machine.queue.picking.take(chance.sample(waiting, len(waiting) // 9), FakeLink())
                gone.update(each.message.uid for each in taken)
            case 3 if chooser is None:
                chooser = machine.consumer(interest=wanting("JMSPriority = 2"), messages=chance.randrange(5))
                gone.update(machine.link.uids())
            case 4 if chooser is not None:
                machine.queue.detach(chooser, 0)
                chooser = None
            case _:
                waiting = machine.queue.picking.walk(held=False).some(60)
                gone.update(
                    each.message.uid for each in machine.queue.picking.drop(chance.sample(waiting, len(waiting) // 9))
                )
        gone.update(machine.link.uids())
    assert len(found) == len(set(found))
    assert set(range(1, 61)) - gone <= set(found) <= set(range(1, 61))


def test_one_look_after_the_other(make: Make) -> None:
    """However many there are, a portion is no more than it was asked for."""
    machine = make()
    machine.publish(5000)
    walk = machine.queue.picking.walk(held=False)
    assert [len(walk.some(100)) <= 100 for _ in range(40)] == [True] * 40
