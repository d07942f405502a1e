"""A naive list beside the real thing."""

from __future__ import annotations

from bisect import insort

import hypothesis.strategies as st
import pytest
from hypothesis import given

from services.common import plugins
from services.rpc import queue_pb2 as pb
from tests.contract.queue_types.conftest import NEEDS
from tests.support.queue_machine import Machine

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 6)),
        st.tuples(st.just("attach"), st.integers(0, 4)),
        st.tuples(st.just("credit"), st.integers(0, 5)),
        st.tuples(st.just("accept"), st.integers(0, 30)),
        st.tuples(st.just("release"), st.integers(0, 30)),
        st.tuples(st.just("restore"), st.integers(0, 30)),
        st.tuples(st.just("get"), st.just(0)),
        st.tuples(st.just("detach"), st.just(0)),
        st.tuples(st.just("purge"), st.just(0)),
        st.tuples(st.just("break"), st.just(0)),
    ),
    max_size=40,
)


class Model:
    """A sorted list of what is ready, a set of what is not settled, and one consumer's credit."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.queue = machine, machine.queue
        self.ready: list[int] = []
        self.unsettled: dict[int, bool] = {}
        self.returned: set[int] = set()
        self.published = 0
        self.consumer = None
        self.expected: list[tuple[int, bool]] = []

    def publish(self, count: int) -> None:
        self.ready += range(self.published + 1, self.published + count + 1)
        self.published += count
        self.deliver(self.credit_of())
        self.machine.publish(count)

    def credit_of(self) -> int:
        return self.consumer.messages if self.consumer else 0

    def deliver(self, credit: int) -> None:
        for _ in range(min(credit, len(self.ready))):
            uid = self.ready.pop(0)
            self.unsettled[uid] = True
            self.expected.append((uid, uid in self.returned))

    def attach(self, credit: int) -> None:
        if self.consumer is None:
            self.deliver(credit)
            self.consumer = self.machine.consumer(messages=credit)

    def credit(self, credit: int) -> None:
        if self.consumer:
            self.deliver(self.credit_of() + credit)
            self.queue.credit(self.consumer, credit, 0, 0)

    def accept(self, which: int) -> None:
        for uid in self.some(which):
            del self.unsettled[uid]
            self.queue.settle(pb.ACCEPT, [uid], 0)

    def release(self, which: int, outcome: pb.Outcome.ValueType = pb.RELEASE) -> None:
        uids = self.some(which)
        for uid in uids:
            del self.unsettled[uid]
            insort(self.ready, uid)
            if outcome == pb.RELEASE:
                self.returned.add(uid)
        self.deliver(self.credit_of())
        self.queue.settle(outcome, uids, 0)

    def restore(self, which: int) -> None:
        self.release(which, pb.RESTORE)

    def some(self, which: int) -> list[int]:
        uids = list(self.unsettled)
        return uids[which % len(uids) :: 2] if uids else []

    def get(self, _: int) -> None:
        expected = self.ready.pop(0) if self.ready else None
        entry = self.queue.get(self.machine.link, 0, settled=False)
        assert (entry.message.uid if entry else None) == expected
        if expected:
            self.unsettled[expected] = True

    def detach(self, _: int) -> None:
        if self.consumer:
            self.queue.detach(self.consumer, 0)
            self.consumer = None

    def purge(self, _: int) -> None:
        assert self.queue.picking.purge() == len(self.ready)
        self.ready.clear()

    def break_(self, _: int) -> None:
        self.detach(0)
        for uid in self.unsettled:
            insort(self.ready, uid)
            self.returned.add(uid)
        self.unsettled.clear()
        self.queue.giving_back.release_held_by(self.machine.link, 0)


@pytest.mark.parametrize("kind", plugins.names("queue_types"))
@given(steps=STEPS)
def test_same_as_a_list(kind: str, steps: list[tuple[str, int]]) -> None:
    """In any history each message is delivered in its place, marked if it was returned, and none is lost or doubled."""
    model = Model(Machine(kind, **NEEDS.get(kind, {})))
    for step, argument in steps:
        getattr(model, f"{step}_" if step == "break" else step)(argument)
        assert [(uid, again) for _, uid, again in model.machine.link.taken()] == model.expected
        model.expected.clear()
        assert model.queue.ready_count == len(model.ready)
    model.queue.settle(pb.ACCEPT, list(model.unsettled), 0)
    model.queue.picking.purge()
    assert model.machine.account.used == 0
