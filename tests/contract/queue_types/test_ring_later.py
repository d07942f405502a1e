"""A policy makes a ring of a queue, or limits one, in which much waits: what is there is looked at in parts."""

from __future__ import annotations

from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from services.common import plugins
from services.queue.machine import turn
from services.rpc import queue_pb2 as pb
from tests.contract.queue_types.conftest import NEEDS
from tests.support.messages import facts
from tests.support.queue_machine import Machine, Make


def ring(machine: Machine) -> tuple[bool, int]:
    """Whether it counts yet, and how many it knows."""
    found = machine.queue._entries.ring
    assert found
    return found.counting, len(found._known)


def here(machine: Machine) -> list[int]:
    return sorted(entry.message.uid for entry in machine.queue.entries())


def test_in_parts(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """No turn looks at more than others can wait for; the clock goes on, and then all goes that is too much."""
    monkeypatch.setattr(turn, "SCATTERED", 10)
    machine = make()
    machine.publish(25)
    machine.adopt({"overflow": "ring", "max-length": 2})
    looks = [0]
    while ring(machine)[0]:
        assert machine.queue.deadline() == 1
        assert machine.queue.ready_count == 25
        machine.queue.expire(1)
        looks.append(ring(machine)[1] or looks[-1])
    assert looks[1:3] in ([10, 20], [0, 0])  # levels without messages are a look each
    assert max(later - before for before, later in pairwise(looks)) <= 10
    while 0 < machine.queue.deadline() <= 1:
        machine.queue.expire(1)
    assert here(machine) == [24, 25]


def test_a_limit_of_what_stands_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where the oldest goes: what stands aside has its place too, once all of it is looked at."""
    monkeypatch.setattr(turn, "SCATTERED", 10)
    machine = Machine(table={"holdOnPublishEnabled": True}, dead_letter_exchange="dlx")
    machine.publish_mixed([facts("amq.direct", not_before=1000)] * 25)
    machine.adopt({"max-length": 3})
    for _ in range(2):
        assert machine.queue.deadline() == 1
        machine.queue.expire(1)
        assert machine.dead() == []
    machine.queue.expire(1)
    assert [uid for uid, _ in machine.dead()] == list(range(1, 23))
    while machine.queue.deadline() == 1:  # what is left of those that are gone is swept out
        machine.queue.expire(1)
    assert machine.queue.ready_count == 3


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 4)),
        st.tuples(st.just("delayed"), st.integers(1, 4)),
        st.tuples(st.just("credit"), st.integers(1, 4)),
        st.tuples(st.sampled_from([pb.ACCEPT, pb.RELEASE, pb.RESTORE]), st.integers(0, 20)),
        st.tuples(st.just("clock"), st.integers(0, 2)),
    ),
    max_size=30,
)


class Naive:
    """A list of what nobody is done with, beside a queue; `limit` counts from when the queue knows all it has."""

    def __init__(self, kind: str) -> None:
        self.machine = Machine(kind, table={"holdOnPublishEnabled": True}, **NEEDS.get(kind, {}))
        self.consumer = self.machine.consumer(messages=0)
        self.kept: list[int] = []
        self.now = 1
        self.limit: int | None = None

    def publish(self, number: int, due: int | None = None) -> None:
        first = self.machine._uid + 1
        self.kept += range(first, first + number)
        self.machine.publish_mixed([facts("amq.direct", not_before=due)] * number, now=self.now)

    def delayed(self, number: int) -> None:
        self.publish(number, self.now + 2)

    def policy(self, number: int) -> None:
        self.limit = number
        self.machine.adopt({"overflow": "ring", "max-length": number}, self.now)

    def credit(self, number: int) -> None:
        self.machine.queue.credit(self.consumer, number, 0, self.now)

    def clock(self, number: int) -> None:
        self.now += number
        self.machine.queue.expire(self.now)
        self.machine.queue.dispatch(self.now)

    def end(self, _: int) -> None:
        while 0 < self.machine.queue.deadline() <= self.now:
            self.clock(0)

    def settle(self, outcome: pb.Outcome.ValueType, number: int) -> None:
        if held := sorted(self.machine.queue.unsettled):
            uid = held[number % len(held)]
            self.machine.queue.settle(outcome, [uid], self.now)
            if outcome == pb.ACCEPT:
                self.kept.remove(uid)

    def check(self) -> None:
        if self.limit is not None and not ring(self.machine)[0]:
            self.kept = self.kept[-max(self.limit, 1) :]
            assert ring(self.machine)[1] == len(self.kept)
        assert here(self.machine) == self.kept


@pytest.mark.parametrize("kind", plugins.names("queue_types"))
@given(before=STEPS, after=STEPS, limit=st.integers(0, 6))
@example(  # the end of the chain was taken for its beginning
    before=[("publish", 3), ("publish", 3), ("credit", 2), ("delayed", 3)],
    after=[(pb.RESTORE, 10), ("clock", 2), ("delayed", 2), ("credit", 3), ("delayed", 4)],
    limit=0,
)
def test_beside_a_naive_list(
    kind: str, before: list[tuple[str | int, int]], after: list[tuple[str | int, int]], limit: int
) -> None:
    """Whatever comes, goes, is handed out and due meanwhile: the newest are left of all that nobody is done with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turn, "SCATTERED", 2)
        naive = Naive(kind)
        for step, number in [*before, ("policy", limit), *after, ("end", 0)]:
            if isinstance(step, str):
                getattr(naive, step)(number)
            else:
                naive.settle(step, number)  # type: ignore[arg-type]
            naive.check()
        assert not ring(naive.machine)[0]
