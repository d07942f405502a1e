"""Message groups, standard and shared, as in Broker-J (its inventory, section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from services.common import plugins
from services.queue.machine.consumers import Consumer
from services.rpc import queue_pb2 as pb
from tests.contract.queue_types.conftest import NEEDS
from tests.contract.queue_types.test_choosing import settled_down
from tests.support.naive_queue import NaiveQueue
from tests.support.queue_machine import FakeLink, Machine, Make

STANDARD = {"qpid.group_header_key": "g"}
SHARED = {**STANDARD, "qpid.shared_msg_group": "1"}


def test_standard_groups(make: Make) -> None:
    """One consumer gets all of a group as long as he is there, though others have credit; then it is another's."""
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
    """A group is a consumer's while he holds some of it; the next may be another's, those without a group are one."""
    machine, one, other = make(table=SHARED), FakeLink(), FakeLink()
    machine.consumer(link=one, messages=1)
    machine.consumer(link=other)
    machine.publish_with("g", "a", "a", "b", None, None)
    assert (one.uids(), other.uids()) == ([1], [3, 4, 5])
    machine.queue.settle(pb.ACCEPT, [1], 0)
    assert other.uids() == [2]


def test_what_comes_back(make: Make) -> None:
    """It comes before the rest of its group, all of which is for who has that."""
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


def test_of_a_former_owner(make: Make) -> None:
    """Whose the group was it is yet, where he holds some of it."""
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


OUTCOMES = st.sampled_from((pb.ACCEPT, pb.RELEASE, pb.RESTORE))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.lists(st.sampled_from(("a", "b", "c", None)), max_size=5)),
        st.tuples(st.just("attach"), st.integers(0, 4)),
        st.tuples(st.just("credit"), st.tuples(st.integers(0, 5), st.integers(1, 3))),
        st.tuples(
            st.just("settle"), st.tuples(st.integers(0, 30), st.sampled_from((pb.ACCEPT, pb.RELEASE, pb.RESTORE)))
        ),
        st.tuples(st.just("detach"), st.integers(0, 5)),
    ),
    max_size=40,
)


class Naive(NaiveQueue):
    """What there is, and who holds it, or has had it last of its group."""

    def __init__(self, machine: Machine, *, shared: bool) -> None:
        super().__init__(machine)
        self.shared = shared
        self.groups: dict[int, str | None] = {}
        self.owners: dict[str | None, Consumer] = {}

    def publish(self, groups: list[str | None]) -> None:
        for uid, group in enumerate(groups, len(self.groups) + 1):
            self.groups[uid] = group
            self.ready.add(uid)
        if groups:
            self.machine.publish_with("g", *groups)

    def attach(self, credit: int) -> None:
        self.consumers.append(self.machine.consumer(messages=credit))

    def detach(self, number: int) -> None:
        """What it holds comes back."""
        if self.consumers:
            gone = self.consumers.pop(number % len(self.consumers))
            self.owners = {group: owner for group, owner in self.owners.items() if owner is not gone}
            self.queue.detach(gone, 0)
            self.compare()

    def compare(self) -> None:
        """A group is one consumer's; what somebody with credit might have does not wait."""
        settled_down(self.machine)
        known = {consumer.handle: consumer for consumer in self.consumers}
        for handle, uid, _ in self.machine.link.taken():
            assert self.may_have(known[handle], uid)
            self.ready.remove(uid)
            self.held[uid] = self.owners[self.groups[uid]] = known[handle]
        assert self.queue.ready_count == len(self.ready)
        for consumer in self.consumers:
            assert not (consumer.ready and any(self.may_have(consumer, uid) for uid in self.ready))

    def may_have(self, consumer: Consumer, uid: int) -> bool:
        group = self.groups[uid]
        if self.shared:
            return all(holder is consumer for its, holder in self.held.items() if self.groups[its] == group)
        return group is None or self.owners.get(group, consumer) is consumer


@pytest.mark.parametrize("kind", plugins.names("queue_types"))
@pytest.mark.parametrize("table", [STANDARD, SHARED], ids=["standard", "shared"])
@given(steps=STEPS)
def test_beside_a_naive_model(kind: str, table: Mapping[str, Any], steps: list[tuple[str, Any]]) -> None:
    """Whatever comes, goes and comes back."""
    make = partial(Machine, kind, **NEEDS.get(kind, {}))
    naive = Naive(make(table=table), shared=table is SHARED)
    for step, what in steps:
        getattr(naive, step)(what)
        naive.compare()
