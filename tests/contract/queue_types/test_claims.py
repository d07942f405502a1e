"""What clients hold of messages that come again after a change of owner."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from services.queue.machine import turn
from services.queue.machine.claims import Claims
from services.queue.machine.entry import Entry, Holder, JournalPart, Undecided
from services.queue.machine.message import Message
from services.queue.machine.walk import Walk
from services.rpc import queue_pb2 as pb
from tests.support.messages import PROPERTIES, facts
from tests.support.queue_machine import FakeLink, Machine, Make


def test_claim_before_the_message(make: Make) -> None:
    """A message that a client holds stays its own when the publisher sends it again: no other client gets it."""
    machine = make()
    machine.consumer(held=[2], again=True)
    machine.publish(3)
    assert machine.link.taken() == [(1, 1, False), (1, 3, False)]
    machine.queue.settle(pb.RELEASE, [2], 0)
    assert machine.link.taken() == [(1, 2, True)]


def test_settled_before_the_message(make: Make) -> None:
    """A message that a client has had and acknowledged is done with when it is sent again."""
    machine = make(durable=True)
    machine.consumer(held=[1, 2], again=True)
    machine.queue.settle(pb.ACCEPT, [1, 2], 0)
    machine.publish(3, persistent=True)
    assert machine.link.uids() == [3]
    assert machine.queue.ready_count == 0
    assert sum(map(len, machine.draft.dequeues.values())) == 2
    machine.queue.settle(pb.ACCEPT, [3], 0)
    assert machine.account.used == 0


def test_rejected_before_the_message(make: Make) -> None:
    """A message that a client has rejected is a dead letter when it is sent again."""
    machine = make(dead_letter_exchange="dlx")
    machine.consumer(held=[1], again=True)
    machine.queue.settle(pb.REJECT, [1], 0)
    machine.publish(1)
    assert machine.dead() == [(1, "rejected")]


@pytest.mark.parametrize("stray", [True, False])
def test_what_is_granted_is_marked_as_delivered(make: Make, stray: bool) -> None:
    """A client had it when the former owner died, which had not written that: the next one after this has to know."""
    machine = make(durable=True)
    its = [Message(uid, facts(persistent=True), PROPERTIES, b"body") for uid in (1, 2, 3)]
    machine.account.hold(its, sum(one.kept for one in its), machine.queue.holding)
    machine.queue.recover([Entry(one, place, part=JournalPart(7, 0)) for place, one in enumerate(its)], 0)
    if stray:
        machine.queue.claim([2], machine.link, 0)
    else:
        machine.consumer(held=[2], again=True, messages=0)
    assert machine.draft.delivered == {7: 2}
    machine.queue.claim([2], machine.link, 0)
    assert machine.queue.ready_count == 2


def held_twice(make: Make) -> tuple[Machine, FakeLink, FakeLink]:
    """A gateway that was cut off, and another one, say that they hold the one message; the other one's credit is 5."""
    machine, first, second = make(), FakeLink(1), FakeLink(2)
    machine.publish(1)
    machine.consumer(held=[1], again=True, link=first)
    machine.consumer(held=[1], again=True, link=second)
    return machine, first, second


def test_two_hold_one_message(make: Make) -> None:
    """What one client returns, another has already: it is not delivered a second time while one holds it."""
    machine, first, second = held_twice(make)
    machine.queue.settle(pb.RELEASE, machine.queue.not_others([1], first), 0)
    assert first.taken() == second.taken() == []
    assert machine.queue.not_others([1], second) == [1]
    machine.queue.settle(pb.RELEASE, [1], 0)
    assert [*first.taken(), *second.taken()] == [(1, 1, True)]


@pytest.mark.parametrize("who", [0, 1])
def test_two_hold_one_message_and_one_takes_it(make: Make, who: int) -> None:
    """The first acceptance is final."""
    machine, *both = held_twice(make)
    machine.queue.settle(pb.ACCEPT, [1], 0)
    assert machine.account.used == 0
    machine.queue.giving_back.release_held_by(both[1 - who], 0)
    assert both[0].taken() == both[1].taken() == []
    assert not list(machine.queue.entries())


def test_two_held_one_message(make: Make) -> None:
    """When the other one has given it back, or is gone, it goes on from the first as any other."""
    for how in ("given back", "gone"):
        machine, first, second = held_twice(make)
        if how == "gone":
            machine.queue.giving_back.release_held_by(second, 0)
            second.broken = True
        else:
            assert machine.queue.not_others([1], second) == []
        machine.queue.settle(pb.RELEASE, [1], 0)
        assert [*first.taken(), *second.taken()] == [(1, 1, True)], how


def test_two_hold_one_message_and_a_transaction_takes_it(make: Make) -> None:
    """Nothing is kept of the other one: what a transaction settles is done with."""
    machine, *_ = held_twice(make)
    entries, _ = machine.queue.transacted.hold([1], Undecided(1))
    machine.queue.transacted.settle_held(pb.ACCEPT, entries, 0, staged=False)
    assert machine.account.used == 0
    assert not machine.queue._claims


def test_given_back_before_the_message(make: Make) -> None:
    """What was released, or whose holder has gone, is delivered as any other."""
    machine = make()
    gone = FakeLink()
    machine.consumer(held=[1], again=True)
    machine.consumer(held=[2], again=True, link=gone, messages=0)
    machine.queue.settle(pb.RELEASE, [1], 0)
    machine.queue.giving_back.release_held_by(gone, 0)
    machine.publish(2)
    assert machine.link.uids() == [1, 2]


def test_given_back_in_turns(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than goes in one turn is at its place before anything is delivered that was behind it, or comes new."""
    monkeypatch.setattr(turn, "AT_ONCE", 2)
    machine, gone, back = make(), FakeLink(), FakeLink()
    machine.consumer(link=gone, messages=5)
    machine.publish(5)
    machine.consumer()
    uids = machine.queue.giving_back.release_held_by(gone, 0)
    machine.publish(1)
    assert uids == [1, 2, 3, 4, 5]
    machine.queue.giving_back.release(uids[:2], gone, 0, last=False)
    gone.broken = True
    machine.queue.claim([4], back, 0)
    machine.queue.settle(pb.ACCEPT, [3], 0)
    machine.queue.giving_back.release(uids[2:4], gone, 0, last=False)
    assert machine.queue.lags(0)
    assert machine.queue.get(machine.link, 0, settled=True) is None
    assert machine.link.uids() == []
    machine.queue.giving_back.release(uids[4:], gone, 0, last=True)
    assert machine.link.taken() == [(2, 1, True), (2, 2, True), (2, 5, True), (2, 6, False)]
    machine.queue.giving_back.release_held_by(back, 0)
    assert machine.link.uids() == [4]


def test_given_back_too_late(make: Make) -> None:
    """What others got since is theirs: a former holder that reported too late returns nothing."""
    machine, former, present = make(), Holder(1), FakeLink(2)
    machine.consumer(link=present, messages=2)
    machine.publish(3)
    assert machine.queue.not_others([1, 2, 3], former) == [3]
    assert machine.queue.not_others([1, 2, 3], present) == [1, 2, 3]
    transaction = Undecided(2)
    machine.queue.transacted.hold([1], transaction)
    present.broken = True
    assert machine.queue.not_others([1, 2, 3], former) == [2, 3]
    assert machine.queue.not_others([1, 2, 3], present) == [1, 2, 3]


def test_old_claims_are_forgotten(make: Make) -> None:
    """A claim for a message that has not come in a minute is of no account."""
    machine = make()
    machine.consumer(held=[1], again=True)
    machine.publish(1, now=60_001)
    assert machine.link.uids() == [1]


def test_settled_in_a_transaction_before_the_message(make: Make) -> None:
    """A message that a client has had, and acknowledged in a transaction, is done with when it is sent again."""
    machine, transaction = make(durable=True), Undecided()
    machine.consumer(held=[1, 2, 3], again=True)
    assert machine.queue.transacted.hold([1, 2, 77], transaction) == ([], [1, 2])
    machine.publish(1, persistent=True)  # the first comes while nothing is decided
    machine.queue.transacted.settle_coming(pb.ACCEPT, [1, 2], transaction, 0)
    machine.publish(2, persistent=True)
    machine.queue.giving_back.release_held_by(machine.link, 0)
    assert machine.link.uids() == [3]
    assert sum(map(len, machine.draft.dequeues.values())) == 2


def test_a_transaction_before_the_message_is_off(make: Make) -> None:
    """A message that came meanwhile, and one that comes later, belong to the client that claims them."""
    machine, transaction = make(), Undecided()
    machine.consumer(held=[1, 2], again=True)
    machine.queue.transacted.hold([1, 2], transaction)
    machine.publish(1)
    entries = machine.queue.transacted.let_go([1, 2], transaction)
    assert [entry.message.uid for entry in entries] == [1]
    assert list(transaction.heirs.items()) == [(entries[0], machine.link)]
    machine.queue.transacted.unhold(entries, machine.link, 0)
    machine.publish(1)
    assert machine.link.taken() == []
    machine.queue.settle(pb.RELEASE, [1, 2], 0)
    assert machine.link.uids() == [1, 2]


def test_the_holder_is_gone_before_a_transaction_is_decided(make: Make) -> None:
    """What is committed counts though the consumer, or its gateway, has left meanwhile; the rest is delivered again."""
    for end in (
        lambda machine, gone: machine.queue.giving_back.release_held_by(gone, 0),
        lambda machine, _gone: machine.queue.settle(pb.ABANDON, [1, 2], 0),
    ):
        machine, gone, transaction, other = make(), FakeLink(), Undecided(), Undecided()
        machine.consumer()
        machine.consumer(held=[1, 2], again=True, link=gone, messages=0)
        machine.queue.transacted.hold([1], transaction)
        machine.queue.transacted.hold([2], other)
        end(machine, gone)
        machine.queue.transacted.settle_coming(pb.ACCEPT, [1], transaction, 0)
        assert machine.queue.transacted.let_go([2], other) == []
        machine.publish(2)
        assert machine.link.uids() == [2]


def test_given_back_before_a_transaction_is_decided(make: Make) -> None:
    """A transaction does not give back what its gateway has given back before, and others have."""
    machine, transaction = make(), Undecided()
    machine.consumer(held=[1, 2], again=True)
    machine.queue.transacted.hold([1, 2], transaction)
    machine.queue.settle(pb.RELEASE, [1], 0)
    machine.publish(1)
    assert machine.link.uids() == [1]
    machine.queue.transacted.settle_coming(pb.RELEASE, [1, 2], transaction, 0)
    machine.publish(1)
    assert machine.link.uids() == [2]


def test_claimed_again_before_a_transaction_is_decided(make: Make) -> None:
    """A gateway that comes again has what its transaction does not settle in the end."""
    machine, transaction, again = make(), Undecided(), FakeLink()
    machine.consumer(held=[1], again=True)
    machine.queue.transacted.hold([1], transaction)
    machine.queue.claim([1], again, 0)
    machine.publish(1)
    machine.queue.transacted.let_go([1], transaction)
    assert list(transaction.heirs.values()) == [again]


def test_claimed_in_parts(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked for a few at a time, it is theirs all the same; what the looks come to before it arrives is nobody's."""
    monkeypatch.setattr(turn, "FOUND", 2)
    monkeypatch.setattr(turn, "SEEN", 2)
    machine = make(durable=True)
    machine.publish(7, persistent=True)
    consumer = machine.consumer(messages=0)
    seeking = machine.queue.seeking
    seeking.hold_up()
    seeking.expect([2, 9], machine.link, consumer, 0)
    seeking.expect([5, 6], machine.link, None, 0)
    walk, looks = seeking.begin(), 1
    while seeking.look(walk, 0):
        looks += 1
        assert machine.queue.get(machine.link, 0, settled=True) is None
    assert looks >= 4  # one is not here: all of it is looked at
    assert sorted(machine.queue.unsettled) == [2, 5, 6]
    machine.publish(2, persistent=True)
    assert sorted(machine.queue.unsettled) == [2, 5, 6, 9]
    seeking.go_on(0)
    machine.queue.credit(consumer, 100, 1 << 20, 0)
    assert sorted(machine.link.uids()) == [1, 3, 4, 7, 8]
    machine.queue.settle(pb.ACCEPT, [2, 5, 6, 9], 0)
    assert list(machine.queue.unsettled) == sorted([1, 3, 4, 7, 8])


def recovered(make: Make, monkeypatch: pytest.MonkeyPatch, *, expires: int = 0, **arguments: object) -> Machine:
    """A former owner's: ten messages, of which clients say in parts that they hold the first four."""
    monkeypatch.setattr(turn, "FOUND", 2)
    monkeypatch.setattr(turn, "SEEN", 2)
    machine = make(durable=True, **arguments)
    its = [Message(uid, facts(persistent=True), PROPERTIES, b"body") for uid in range(1, 11)]
    machine.account.hold(its, sum(one.kept for one in its), machine.queue.holding)
    entries = [Entry(one, place, expires, part=JournalPart(7, 0)) for place, one in enumerate(its)]
    machine.queue.recover(entries, 0)
    machine.queue.seeking.hold_up()
    return machine


def claim_in_parts(machine: Machine, between: Callable[[], object], now: int) -> None:
    """The four, each by itself; something happens after each step."""
    seeking = machine.queue.seeking
    for uid in (1, 2, 3, 4):
        seeking.expect([uid], machine.link, None, now)
        between()
    walk = seeking.begin()
    while seeking.look(walk, now):
        between()


def test_too_much_waits_while_it_is_claimed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """What clients hold is not too much, whatever the clock or others do before it is found."""
    machine = recovered(make, monkeypatch, max_length=6, dead_letter_exchange="dlx")
    machine.context.timed.clear()

    def between() -> None:
        assert machine.queue.deadline() == 0
        machine.queue.expire(0)

    claim_in_parts(machine, between, 0)
    machine.publish(1, persistent=True)
    machine.queue.seeking.go_on(0)
    assert sorted(machine.queue.unsettled) == [1, 2, 3, 4]
    assert machine.queue.ready_count == 6
    assert len(machine.dead()) == 1
    machine.queue.settle(pb.ACCEPT, [1, 2, 3, 4], 0)
    assert machine.dead() == []


def test_what_comes_back_while_it_is_claimed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """It drives nothing out before all is found."""
    machine = recovered(make, monkeypatch, max_length=6, dead_letter_exchange="dlx")
    machine.queue.seeking.expect([1], machine.link, None, 0)
    machine.queue.seeking.look(machine.queue.seeking.begin(), 0)
    machine.queue.settle(pb.RELEASE, [1], 0)
    claim_in_parts(machine, lambda: None, 0)
    machine.queue.seeking.go_on(0)
    assert (sorted(machine.queue.unsettled), machine.queue.ready_count) == ([1, 2, 3, 4], 6)
    assert machine.dead() == []


def test_nothing_expires_while_it_is_claimed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """What clients hold does not expire; the rest does when all of theirs is found."""
    machine = recovered(make, monkeypatch, expires=5, message_ttl=5)

    def between() -> None:
        assert machine.queue.deadline() == 0
        machine.queue.expire(10)
        machine.queue.dispatch(10)
        assert machine.queue.get(machine.link, 10, settled=True) is None

    claim_in_parts(machine, between, 10)
    machine.queue.seeking.go_on(10)
    assert (sorted(machine.queue.unsettled), machine.queue.ready_count) == ([1, 2, 3, 4], 0)


def test_old_claims_are_not_forgotten_while_they_are_sought(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long that takes: who published something meanwhile makes nothing of them somebody else's."""
    machine = recovered(make, monkeypatch)
    machine.queue.seeking.expect([2, 5], machine.link, None, 0)
    machine.publish(1, now=61_000)
    walk = machine.queue.seeking.begin()
    while machine.queue.seeking.look(walk, 61_000):
        machine.publish(1, now=61_000)
    machine.queue.seeking.go_on(61_000)
    assert sorted(machine.queue.unsettled) == [2, 5]
    machine.publish(1, now=200_000)
    assert not machine.queue._claims


def test_a_step_is_not_much(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many are looked at in one, of which few are taken out in one."""
    machine = recovered(make, monkeypatch)
    monkeypatch.setattr(turn, "SEEN", 20)
    taken, looks = list[int](), list[int]()
    find, some = Claims.find, Walk.some
    monkeypatch.setattr(Claims, "find", lambda self, found: (taken.append(len(found)), find(self, found))[1])
    monkeypatch.setattr(Walk, "some", lambda self, most: (looks.append(most), some(self, most))[1])
    machine.queue.seeking.expect(range(1, 9), machine.link, None, 0)
    walk = machine.queue.seeking.begin()
    steps = 1
    while machine.queue.seeking.look(walk, 0):
        steps += 1
    assert (max(taken) <= 2, sum(taken), steps) == (True, 8, len(taken) + len(looks))
    assert set(looks) == {20 if machine.queue.seeking.by_arrival else 5}
    assert sorted(machine.queue.unsettled) == list(range(1, 9))


def test_given_back_of_a_great_many(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose each is, is looked at in parts too: what others hold, or claim, stays theirs."""
    monkeypatch.setattr(turn, "SEEN", 3)
    machine, gone, other = make(), FakeLink(), FakeLink(2)
    machine.publish(4)
    machine.consumer(held=[1, 2, 11], again=True, link=gone, messages=0)
    machine.consumer(held=[3, 12], again=True, link=other, messages=0)
    gone.broken = True
    uids = machine.queue.giving_back.release_held_by(gone, 0)
    assert sorted(uids) == [1, 2, 3, 11, 12]
    machine.consumer()
    machine.queue.giving_back.release(uids[:2], gone, 0, last=False)
    assert machine.link.uids() == []
    machine.queue.giving_back.release(uids[2:], gone, 0, last=True)
    assert sorted(machine.link.uids()) == [1, 2, 4]
    assert sorted(machine.queue.unsettled) == [1, 2, 3, 4]
    assert list(machine.queue._claims._waiting) == [12]
