"""Messages that are there twice, or that two gateways say to hold, where they are claimed in parts."""

from __future__ import annotations

import pytest

from services.queue.machine.entry import Entry, JournalPart
from services.queue.machine.message import Message
from services.rpc import queue_pb2 as pb
from tests.support.messages import PROPERTIES, facts
from tests.support.queue_machine import FakeLink, Machine, Make


def seek(machine: Machine, uids: list[int], *links: FakeLink) -> None:
    """Each of these says that it holds them; then all are looked for."""
    seeking = machine.queue.seeking
    seeking.hold_up()
    for link in links:
        seeking.expect(uids, link, None, 0)
    walk = seeking.begin()
    while seeking.look(walk, 0):
        pass
    seeking.go_on(0)


def test_twice_in_the_list(make: Make) -> None:
    """Of a message that is there twice one is the client's, and the other stays in the list: none is lost."""
    machine = make(durable=True)
    its = [Message(uid, facts(persistent=True), PROPERTIES, b"body") for uid in (1, 1, 2)]
    machine.account.hold(its, sum(one.kept for one in its), machine.queue.holding)
    machine.queue.recover([Entry(one, place, part=JournalPart(7, 0)) for place, one in enumerate(its)], 0)
    seek(machine, [1], machine.link)
    assert (list(machine.queue.unsettled), machine.queue.ready_count) == ([1], 2)


def test_two_hold_what_is_in_the_list(make: Make) -> None:
    """It is with who came first, and then with the other: nobody is given it while one of them has it."""
    machine, first, second = make(), FakeLink(1), FakeLink(2)
    machine.publish(1)
    seek(machine, [1], first, second)
    machine.consumer()
    assert machine.queue.unsettled[1].holder is first
    machine.queue.settle(pb.RELEASE, machine.queue.not_others([1], first), 0)
    assert machine.queue.unsettled[1].holder is second
    machine.queue.settle(pb.RELEASE, machine.queue.not_others([1], second), 0)
    assert machine.link.uids() == [1]


def held_twice(make: Make) -> tuple[Machine, FakeLink, FakeLink]:
    """Two say that they hold what is not here."""
    machine, first, second = make(), FakeLink(1), FakeLink(2)
    for link in (first, second):
        machine.consumer(held=[1], again=True, link=link, messages=0)
    return machine, first, second


def test_the_second_gives_it_back_before_it_is_here(make: Make) -> None:
    """It is the first one's all the same, and anybody's when that one is gone."""
    machine, first, second = held_twice(make)
    machine.queue.settle(pb.RELEASE, machine.queue.not_others([1], second), 0)
    machine.consumer()
    machine.publish(1)
    assert machine.queue.unsettled[1].holder is first
    machine.queue.giving_back.release_held_by(first, 0)
    assert machine.link.uids() == [1]


@pytest.mark.parametrize("outcome", [pb.RELEASE, pb.ABANDON, None])
def test_the_first_gives_it_back_before_it_is_here(make: Make, outcome: pb.Outcome.ValueType | None) -> None:
    """Then it is the second one's, whether it was returned, or who had it is gone."""
    machine, first, second = held_twice(make)
    if outcome is None:
        machine.queue.giving_back.release_held_by(first, 0)
    else:
        machine.queue.settle(outcome, machine.queue.not_others([1], first), 0)
    machine.consumer()
    machine.publish(1)
    assert machine.queue.unsettled[1].holder is second
    assert not machine.queue._claims


def test_the_second_gives_it_back_when_the_first_is_gone(make: Make) -> None:
    """Then it is nobody's, and is delivered when it comes: who has let it go does not inherit it."""
    machine, first, second = held_twice(make)
    first.broken = True
    machine.queue.settle(pb.RELEASE, machine.queue.not_others([1], second), 0)
    machine.consumer()
    machine.publish(1)
    assert machine.link.uids() == [1]


def test_one_was_done_with_it_before_the_other_came(make: Make) -> None:
    """It is done with when it is here, whoever gives it back meanwhile."""
    machine, first, second = make(), FakeLink(1), FakeLink(2)
    machine.consumer(held=[1], again=True, link=first, messages=0)
    machine.queue.settle(pb.ACCEPT, [1], 0)
    machine.consumer(held=[1], again=True, link=second, messages=0)
    machine.queue.settle(pb.RELEASE, machine.queue.not_others([1], second), 0)
    machine.consumer()
    machine.publish(1)
    assert (list(machine.queue.entries()), machine.link.uids(), bool(machine.queue._claims)) == ([], [], False)


def test_heirs_of_what_never_comes(make: Make) -> None:
    """They are forgotten with it."""
    machine, *_ = held_twice(make)
    machine.consumer()
    machine.publish(1, now=60_001)
    assert machine.link.uids() == [1]
    assert not machine.queue._claims
