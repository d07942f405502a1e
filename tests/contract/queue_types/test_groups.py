"""Message groups, standard and shared, as in Broker-J (its inventory, section 2)."""

from __future__ import annotations

import gc
from functools import partial
from operator import mul
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from services.common import plugins
from services.queue.machine import turn
from services.queue.machine.consumers import Consumer
from services.queue.machine.delivery import late
from services.queue.machine.entry import Entry
from services.rpc import queue_pb2 as pb
from tests.contract.queue_types.conftest import NEEDS
from tests.contract.queue_types.test_choosing import FEW_OR_MANY, settled_down, wanting
from tests.support.messages import PROPERTIES, facts
from tests.support.naive_queue import NaiveQueue
from tests.support.queue_machine import AMQP_0_9, FakeLink, Machine, Make

STANDARD = {"qpid.group_header_key": "g"}
SHARED = {**STANDARD, "qpid.shared_msg_group": "1"}
A_GROUP = AMQP_0_9.with_headers(PROPERTIES, {"g": "a"})


def test_standard_groups(make: Make) -> None:
    """One consumer gets all of a group as long as it is attached, though others have credit; then another gets it."""
    machine, one, other = make(table=STANDARD), FakeLink(), FakeLink()
    first = machine.consumer(link=one, messages=2)
    machine.consumer(link=other)
    machine.publish_with("g", "a", "b", "a", "a", None)
    assert (one.uids(), other.uids()) == ([1, 3], [2, 5])
    machine.queue.settle(pb.ACCEPT, [1, 3], 0)
    assert (one.uids(), other.uids()) == ([], [])
    machine.queue.detach(first, 0)
    assert other.uids() == [4]


def test_shared_groups(make: Make) -> None:
    """A consumer has a group while it holds some of it; then another may; messages without a group are one group."""
    machine, one, other = make(table=SHARED), FakeLink(), FakeLink()
    machine.consumer(link=one, messages=1)
    machine.consumer(link=other)
    machine.publish_with("g", "a", "a", "b", None, None)
    assert (one.uids(), other.uids()) == ([1], [3, 4, 5])
    machine.queue.settle(pb.ACCEPT, [1], 0)
    assert other.uids() == [2]


def test_what_comes_back(make: Make) -> None:
    """It comes before the rest of its group, all of which goes to the consumer that has the group."""
    machine, one, other = make(table=SHARED), FakeLink(), FakeLink()
    machine.consumer(link=one, messages=1)
    machine.publish_with("g", *["a"] * 100)
    machine.consumer(link=other, messages=90)
    assert one.uids() == [1]
    machine.queue.settle(pb.RELEASE, [1], 0)
    assert other.uids() == list(range(1, 91))
    machine.consumer(link=one)
    machine.queue.settle(pb.ACCEPT, list(range(1, 91)), 0)
    assert one.uids() == list(range(91, 101))


@pytest.mark.parametrize(("table", "then"), [(STANDARD, []), (SHARED, [4])], ids=["standard", "shared"])
def test_what_is_fetched(make: Make, table: dict[str, str], then: list[int]) -> None:
    """It gets the next message, though another has its group; a shared group goes to no other until that is settled."""
    machine, one = make(table=table), FakeLink()
    machine.consumer(link=one, messages=1)
    machine.publish_with("g", "a", "a")
    entry = machine.queue.get(machine.link, 0, settled=False)
    assert entry is not None
    assert (one.uids(), entry.message.uid) == ([1], 2)
    machine.queue.settle(pb.ACCEPT, [1], 0)
    machine.consumer(link=one)
    machine.publish_with("g", "b", "a")
    assert one.uids() == [3]
    machine.queue.settle(pb.ACCEPT, [2], 0)
    assert one.uids() == then


def test_of_a_former_owner(make: Make) -> None:
    """The group stays with its former consumer, if that holds some of it."""
    machine, one, other = make(table=STANDARD), FakeLink(), FakeLink()
    machine.publish_with("g", "a", "a")
    machine.queue.attach(Consumer(1, one, messages=1, size=1 << 30), [1], 0, again=True)
    machine.consumer(link=other)
    assert (one.uids(), other.uids()) == ([2], [])


def test_by_the_property_of_its_protocol(make: Make) -> None:
    """JMSXGroupID, where no header is named (JMS 3.5.9)."""
    machine, one, other = make(table={"messageGroupType": "STANDARD"}), FakeLink(), FakeLink()
    machine.consumer(link=one, messages=1)
    machine.consumer(link=other)
    machine.publish_with("JMSXGroupID", "a", "a", "b")
    assert (one.uids(), other.uids()) == ([1], [3])


UNWANTED = [{"g": "a", "n": 0}]


@pytest.mark.parametrize("table", [STANDARD, SHARED], ids=["standard", "shared"])
@pytest.mark.parametrize("looks", [12, 1000])
def test_behind_messages_that_no_consumer_selects(
    make: Make, monkeypatch: pytest.MonkeyPatch, table: dict[str, str], looks: int
) -> None:
    """A consumer that had to pass a group gets what it selects of it once it is free, and then others do not."""
    monkeypatch.setattr(turn, "LOOKS", looks)
    machine, one, other, third = make(table=table), FakeLink(), FakeLink(), FakeLink()
    owner = machine.consumer(link=other, messages=1)
    machine.consumer(link=one, interest=wanting("n > 100"))
    machine.consumer(link=third, interest=wanting("n < 0"))
    machine.publish_headers([*UNWANTED * 41, {"g": "a", "n": 200}, *UNWANTED * 41, {"g": "a", "n": 200}])
    settled_down(machine)
    machine.queue.settle(pb.ACCEPT, other.uids(), 0)
    machine.queue.detach(owner, 0)
    settled_down(machine)
    assert (one.uids(), third.uids(), machine.queue.ready_count) == ([42, 84], [], 81)


@pytest.mark.parametrize("spare", [5, 1000])
def test_behind_what_has_left_unheard(make: Make, monkeypatch: pytest.MonkeyPatch, spare: int) -> None:
    """The first messages of a free group expire before a consumer has credit: that one gets the others."""
    monkeypatch.setattr(late, "_SPARE", spare)
    machine, one, other = make(table=STANDARD), FakeLink(), FakeLink()
    owner = machine.consumer(link=other, messages=1)
    waiting = machine.consumer(link=one)
    machine.publish_with("g", "a")
    machine.publish_mixed([facts("amq.direct", ttl_ms=10)] * 20, properties=[A_GROUP] * 20)
    machine.publish_with("g", "a", "a")
    machine.queue.credit(waiting, -waiting.messages, 0, 0)
    machine.queue.consumers.stop(waiting)
    machine.queue.detach(owner, 0)
    machine.queue.expire(20)
    for _ in range(10):  # others come and go
        machine.publish_with("g", "a")
    machine.queue.credit(waiting, 100, 0, 20)
    settled_down(machine)
    assert (other.uids(), one.uids()) == ([1], list(range(22, 34)))


@pytest.mark.parametrize("table", [STANDARD, SHARED], ids=["standard", "shared"])
def test_what_has_gone_is_forgotten(make: Make, table: dict[str, str]) -> None:
    """Nothing is kept of messages that others had to pass since their group was taken, and that are gone."""
    machine = make(table=table, max_length=10)
    machine.consumer(link=FakeLink(), messages=1)
    machine.consumer(link=FakeLink())
    for _ in range(40):
        machine.publish_with("g", *["a"] * 100)
    machine.contents.clear()
    gc.collect()
    assert sum(isinstance(each, Entry) for each in gc.get_objects()) < 2000


def test_an_owner_of_something_else_goes(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have not to look again at all that is of another's group."""
    machine, one, other = make(table=STANDARD), FakeLink(), FakeLink()
    machine.consumer(link=other, messages=1)
    machine.consumer(link=FakeLink())
    machine.publish_with("g", *["a"] * 200)
    leaving = machine.consumer(link=one, messages=1, priority=1)
    machine.publish_with("g", "b", "b")
    assert len(one.uids()) == 1
    monkeypatch.setattr(turn, "LOOKS", 20)
    machine.queue.detach(leaving, 0)
    assert (machine.queue.unfinished, machine.queue.ready_count) == (False, 199)


OUTCOMES = st.sampled_from((pb.ACCEPT, pb.RELEASE, pb.RESTORE))
GROUPS = st.sampled_from(("a", "b", "c", None))
SELECTORS = (None, None, "n > 0", "n = 1", "n = 0", "n <> 1")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.lists(st.tuples(GROUPS, st.integers(0, 1)), max_size=5)),
        st.tuples(st.just("publish"), st.builds(mul, st.just([("a", 0)]), st.integers(6, 40))),
        st.tuples(st.just("attach"), st.tuples(st.integers(0, 4), st.sampled_from(SELECTORS))),
        st.tuples(st.just("credit"), st.tuples(st.integers(0, 5), st.integers(1, 3))),
        st.tuples(st.just("settle"), st.tuples(st.integers(0, 30), OUTCOMES)),
        st.tuples(st.just("detach"), st.integers(0, 5)),
        st.tuples(st.just("purge"), st.integers(1, 20)),
    ),
    max_size=40,
)


class Naive(NaiveQueue):
    """A naive model: the messages, and which consumer holds each, or has its group."""

    def __init__(self, machine: Machine, *, shared: bool, in_order: bool) -> None:
        """`in_order`: of arrival."""
        super().__init__(machine)
        self.shared, self.in_order = shared, in_order
        self.messages: dict[int, dict[str, Any]] = {}
        self.owners: dict[str | None, Consumer] = {}

    def publish(self, those: list[tuple[str | None, int]]) -> None:
        first = len(self.messages) + 1
        for uid, (group, n) in enumerate(those, first):
            self.messages[uid] = {"n": n} if group is None else {"g": group, "n": n}
            self.ready.add(uid)
        if those:
            self.machine.publish_headers(self.messages[uid] for uid in range(first, first + len(those)))

    def attach(self, what: tuple[int, str | None]) -> None:
        self.consumers.append(self.machine.consumer(messages=what[0], interest=wanting(what[1])))

    def detach(self, number: int) -> None:
        """What it holds is to be settled yet."""
        if self.consumers:
            gone = self.consumers.pop(number % len(self.consumers))
            self.owners = {group: owner for group, owner in self.owners.items() if owner is not gone}
            self.queue.detach(gone, 0)
            self.compare()

    def purge(self, most: int) -> None:
        self.queue.picking.purge(most)
        self.ready = {entry.message.uid for entry in self.queue.entries()} - self.held.keys()

    def compare(self) -> None:
        """A group belongs to one consumer; no message waits that a consumer with credit could have."""
        settled_down(self.machine)
        known = {consumer.handle: consumer for consumer in self.consumers}
        for handle, uid, _ in self.taken():
            self.take(known[handle], uid)
        assert self.queue.ready_count == len(self.ready)
        for consumer in self.consumers:
            assert not (consumer.ready and any(self.may_have(consumer, uid) for uid in self.ready))

    def taken(self) -> list[tuple[int, int, bool]]:
        return self.machine.link.taken()

    def take(self, consumer: Consumer, uid: int) -> None:
        assert self.may_have(consumer, uid)
        first = min(each for each in self.ready if self.group(each) == self.group(uid) and self.wants(consumer, each))
        assert uid == first or not self.in_order or (self.group(uid) is None and not self.shared)
        self.ready.remove(uid)
        self.held[uid] = self.owners[self.group(uid)] = consumer

    def group(self, uid: int) -> str | None:
        return self.messages[uid].get("g")

    def wants(self, consumer: Consumer, uid: int) -> bool:
        return consumer.interest is None or consumer.interest._selector.selects(self.messages[uid].get)  # type: ignore[union-attr]

    def may_have(self, consumer: Consumer, uid: int) -> bool:
        group = self.group(uid)
        if not self.wants(consumer, uid):
            return False
        if self.shared:
            return all(holder is consumer for its, holder in self.held.items() if self.group(its) == group)
        return group is None or self.owners.get(group, consumer) is consumer


@pytest.mark.parametrize("kind", plugins.names("queue_types"))
@pytest.mark.parametrize("table", [STANDARD, SHARED], ids=["standard", "shared"])
@given(steps=STEPS, looks=FEW_OR_MANY)
def test_beside_a_naive_model(kind: str, table: dict[str, str], steps: list[tuple[str, Any]], looks: int) -> None:
    """In any order of events, and in turns of any size."""
    make = partial(Machine, kind, **NEEDS.get(kind, {}))
    naive = Naive(make(table=table), shared=table is SHARED, in_order=kind == "classic")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turn, "LOOKS", looks)
        for step, what in steps:
            getattr(naive, step)(what)
            naive.compare()
