"""Message groups whose consumers hold some of them while their stream breaks, or the queue gets another owner."""

from __future__ import annotations

from functools import partial
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from services.common import plugins
from services.queue.machine.consumers import Consumer
from services.queue.machine.entry import ACQUIRED, AVAILABLE, Entry, Former, Holder
from services.queue.machine.message import NOBODYS, Message
from services.rpc import queue_pb2 as pb
from tests.contract.queue_types.conftest import NEEDS
from tests.contract.queue_types.test_choosing import wanting
from tests.contract.queue_types.test_groups import GROUPS, OUTCOMES, SELECTORS, SHARED, STANDARD, Naive
from tests.support.queue_machine import FakeLink, Machine, Make

BOTH = pytest.mark.parametrize("table", [STANDARD, SHARED], ids=["standard", "shared"])
Table = dict[str, str]


def lost(make: Make, table: Table) -> tuple[Machine, FakeLink, FakeLink]:
    """A consumer had two of a group of four, and its stream broke; the other one has credit, and gets nothing."""
    machine, one, other = make(table=table), FakeLink(1), FakeLink(2)
    first = machine.consumer(link=one, messages=2)
    machine.consumer(link=other)
    machine.publish_with("g", "a", "a", "a", "a")
    assert one.uids() == [1, 2]
    one.broken = True
    machine.queue.detach(first, 0)
    assert other.uids() == []
    return machine, one, other


def handed_over(make: Make, table: Table) -> tuple[Machine, Former]:
    """A consumer held the first of a group of four at the former owner."""
    former_owner, machine, former = make(table=table), make(table=table, epoch=2), Former(1)
    former_owner.publish_with("g", "a", "a", "a", "a")
    recover(machine, former_owner, {1: former})
    return machine, former


def recover(machine: Machine, former_owner: Machine, holders: dict[int, Former]) -> None:
    """What the former owner had, as the next one reads it; by uid, which consumer held it."""
    entries: list[Entry] = []
    for old in sorted(former_owner.queue.entries(), key=lambda entry: entry.position):
        its, holder = old.message, holders.get(old.message.uid)
        message = Message(its.uid, its.facts, its.properties, its.body)
        entries.append(Entry(message, old.position, state=ACQUIRED if holder else AVAILABLE, holder=holder))
    messages = [entry.message for entry in entries]
    machine.account.hold(messages, sum(message.kept for message in messages), NOBODYS)
    if entries:
        machine.queue.recover(entries, 0)


@BOTH
def test_a_stream_breaks(make: Make, table: Table) -> None:
    """The consumer that attaches again gets the rest of the group, and no other."""
    machine, _, other = lost(make, table)
    again = FakeLink(1)
    machine.consumer(link=again, held=[1, 2], again=True)
    machine.publish_with("g", "a")
    assert (again.uids(), other.uids()) == ([3, 4, 5], [])
    machine.queue.settle(pb.ACCEPT, [1, 2, 3], 0)
    machine.publish_with("g", "a")
    assert (again.uids(), other.uids()) == ([6], [])


@BOTH
def test_what_was_held_is_settled_meanwhile(make: Make, table: Table) -> None:
    """Then others get the rest."""
    machine, _, other = lost(make, table)
    machine.queue.settle(pb.ACCEPT, [1], 0)
    assert other.uids() == []
    machine.queue.settle(pb.ACCEPT, [2], 0)
    assert other.uids() == [3, 4]


@BOTH
def test_a_gateway_dies(make: Make, table: Table) -> None:
    """What its consumer held comes before the rest."""
    machine, one, other = lost(make, table)
    one.over = True
    machine.queue.giving_back.release_held_by(one, 0)
    assert other.uids() == [1, 2, 3, 4]


@BOTH
def test_a_hand_over(make: Make, table: Table) -> None:
    """In any order of attaching, the group belongs to the consumer that holds some of it."""
    machine, former = handed_over(make, table)
    one, other = FakeLink(1), FakeLink(2)
    machine.consumer(link=other, again=True)
    assert other.uids() == []
    consumer = machine.consumer(link=one, held=[1], again=True, messages=0)
    assert not machine.queue.giving_back.release_held_by(former, 0)
    machine.queue.dispatch(0)
    assert other.uids() == []
    machine.queue.credit(consumer, 1, 0, 0)
    machine.queue.settle(pb.ACCEPT, [1], 0)
    assert (one.uids(), other.uids()) == ([2], [])


@BOTH
def test_no_consumer_comes_after_a_hand_over(make: Make, table: Table) -> None:
    """Then any consumer may get all of it, in its order."""
    machine, former = handed_over(make, table)
    machine.consumer(again=True)
    assert machine.link.uids() == []
    machine.queue.giving_back.release_held_by(former, 0)
    assert machine.link.uids() == [1, 2, 3, 4]


@pytest.mark.parametrize(("table", "gets"), [(STANDARD, [2, 3, 4]), (SHARED, [])], ids=["standard", "shared"])
def test_no_consumer_holds_it(make: Make, table: Table, gets: list[int]) -> None:
    """One that is cancelled holds a shared group yet, and no standard one."""
    machine, _ = handed_over(make, table)
    one, other = FakeLink(1), FakeLink(2)
    machine.consumer(link=other, again=True)
    machine.queue.claim([1], one, 0)
    machine.queue.dispatch(0)
    assert other.uids() == gets
    machine.queue.settle(pb.ACCEPT, [1], 0)
    assert other.uids() == ([] if gets else [2, 3, 4])


@BOTH
def test_a_claim_that_waits(make: Make, table: Table) -> None:
    """The group belongs to the consumer that holds the message that is sent again later."""
    machine, one, other = make(table=table), FakeLink(1), FakeLink(2)
    machine.consumer(link=one, held=[1], again=True, messages=0)
    machine.consumer(link=other, again=True)
    machine.publish_with("g", "a")
    machine.publish_with("g", "a")
    assert (one.uids(), other.uids(), machine.queue.ready_count) == ([], [], 1)


@BOTH
def test_two_hold_one_message(make: Make, table: Table) -> None:
    """When one returns it, the group belongs to the other, which has it already."""
    machine, third = make(table=table), FakeLink(3)
    machine.publish_with("g", "a")
    first = machine.consumer(link=FakeLink(1), held=[1], again=True, messages=0)
    machine.consumer(link=FakeLink(2), held=[1], again=True, messages=0)
    machine.consumer(link=third)
    machine.queue.detach(first, 0)
    machine.queue.settle(pb.RELEASE, [1], 0)
    machine.publish_with("g", "a")
    assert (third.uids(), machine.queue.ready_count) == ([], 1)


# ------------------------------------------------------------------ beside a naive model

GATEWAY = st.integers(0, 2)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.lists(st.tuples(GROUPS, st.integers(0, 1)), max_size=5)),
        st.tuples(st.just("attach_at"), st.tuples(GATEWAY, st.integers(0, 4), st.sampled_from(SELECTORS))),
        st.tuples(st.just("credit"), st.tuples(st.integers(0, 5), st.integers(1, 3))),
        st.tuples(st.just("settle"), st.tuples(st.integers(0, 30), OUTCOMES)),
        st.tuples(st.just("detach"), st.integers(0, 5)),
        st.tuples(st.sampled_from(("lose", "come", "come", "die")), GATEWAY),
        st.tuples(st.just("hand_over"), st.none()),
    ),
    max_size=40,
)


class NaiveAway(Naive):
    """As Naive, of three gateways. `reserved`: by standard group, held by consumers that may attach again."""

    def __init__(self, make: Make, *, shared: bool, in_order: bool) -> None:
        super().__init__(make(), shared=shared, in_order=in_order)
        self.make = make
        self.links = [FakeLink(origin) for origin in (1, 2, 3)]
        self.away: dict[int, tuple[Holder, list[Consumer]]] = {}  # former holders, and their consumers
        self.reserved: dict[str | None, set[int]] = {}
        self.handles = 1000

    def attach_at(self, what: tuple[int, int, str | None]) -> None:
        number, credit, text = what
        if number not in self.away:
            self.consumers.append(self.again(self.links[number], [], credit, text and wanting(text)))

    def again(self, link: FakeLink, held: list[int], credit: int, interest: Any) -> Consumer:
        self.handles += 1
        consumer = Consumer(self.handles, link, messages=credit, size=1 << 40, interest=interest)
        self.queue.attach(consumer, held, 0, again=True)
        self.queue.dispatch(0)
        return consumer

    def lose(self, number: int) -> None:
        """All consumers of a gateway, which may come again."""
        if number in self.away:
            return
        link = self.links[number]
        link.broken = True
        gone = [consumer for consumer in self.consumers if consumer.link is link]
        for consumer in gone:  # nothing goes to any of them any more
            self.consumers.remove(consumer)
            self.queue.consumers.stop(consumer)
        self.away[number] = (link, gone)
        for group, owner in list(self.owners.items()):
            if owner in gone:
                del self.owners[group]
                self.reserved[group] = {uid for uid, holder in self.held.items() if holder is owner} & self.of(group)
        for consumer in gone:
            self.queue.detach(consumer, 0)

    def come(self, number: int) -> None:
        """The gateway has another stream, and says what its consumers hold, and what it holds without one."""
        if number not in self.away:
            return
        former, gone = self.away.pop(number)
        link = self.links[number] = FakeLink(number + 1)
        for before in gone:
            held = [uid for uid, holder in self.held.items() if holder is before]
            consumer = self.again(link, held, before.messages, before.interest)
            self.consumers.append(consumer)
            self.claimed(consumer, held)
        strays = [uid for uid, holder in self.held.items() if holder.link.origin == number + 1]
        strays = [uid for uid in strays if self.held[uid] not in self.consumers]
        self.queue.claim(strays, link, 0)
        for group in self.reserved:
            self.reserved[group] -= set(strays)
        assert not self.queue.giving_back.release_held_by(former, 0)
        self.queue.dispatch(0)

    def claimed(self, consumer: Consumer, held: list[int]) -> None:
        for uid in held:
            group = self.group(uid)
            self.held[uid] = consumer
            if group not in self.owners or self.reserved.get(group):
                self.owners[group] = consumer
                self.reserved.pop(group, None)

    def die(self, number: int) -> None:
        """A gateway that does not come again."""
        if number not in self.away:
            return
        former, _ = self.away.pop(number)
        former.over = True
        self.links[number] = FakeLink(number + 1)
        for uid in [uid for uid, holder in self.held.items() if holder.link.origin == number + 1]:
            del self.held[uid]
            self.ready.add(uid)
        self.queue.giving_back.release_held_by(former, 0)
        self.queue.dispatch(0)

    def hand_over(self, _: None) -> None:
        """Another process has the queue from now on: all gateways have to come again."""
        for number in range(3):
            self.lose(number)
        formers = [Former(number + 1) for number in range(3)]
        machine = self.make()
        recover(machine, self.machine, {uid: formers[holder.link.origin - 1] for uid, holder in self.held.items()})
        self.machine, self.queue = machine, machine.queue
        self.machine._uid = len(self.messages)
        self.away = {number: (formers[number], gone) for number, (_, gone) in self.away.items()}
        self.owners.clear()
        self.reserved = {group: set(self.held) & self.of(group) for group in map(self.group, self.held)}

    def compare(self) -> None:
        self.reserved = {group: left for group, uids in self.reserved.items() if (left := uids & self.held.keys())}
        super().compare()

    def of(self, group: str | None) -> set[int]:
        return {uid for uid in self.messages if self.group(uid) == group}

    def taken(self) -> list[tuple[int, int, bool]]:
        return [row for link in self.links for row in link.taken()]

    def may_have(self, consumer: Consumer, uid: int) -> bool:
        group = self.group(uid)
        if not self.shared and group is not None and self.reserved.get(group):
            return False
        return super().may_have(consumer, uid)


@pytest.mark.parametrize("kind", plugins.names("queue_types"))
@BOTH
@given(steps=STEPS)
def test_beside_a_naive_model(kind: str, table: Table, steps: list[tuple[str, Any]]) -> None:
    """Whichever gateways go and come again, and whichever process owns the queue."""
    make = partial(Machine, kind, table=table, **NEEDS.get(kind, {}))
    naive = NaiveAway(make, shared=table is SHARED, in_order=kind == "classic")
    for step, what in steps:
        getattr(naive, step)(what)
        naive.compare()
