"""What expires goes when its time has come, wherever it stands in its queue."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from services.common import plugins
from services.queue.machine import turn
from services.rpc import queue_pb2 as pb
from tests.contract.queue_types.conftest import NEEDS
from tests.contract.queue_types.test_choosing import wanting
from tests.support.messages import facts
from tests.support.naive_queue import NaiveQueue
from tests.support.queue_machine import FakeLink, Machine, Make


def clock(machine: Machine, now: int) -> None:
    """All that is due by then is done."""
    turns = 0
    while 0 < machine.queue.deadline() <= now:
        machine.queue.expire(now)
        machine.queue.dispatch(now)
        turns += 1
        assert turns < 100


def test_behind_what_does_not_expire(make: Make) -> None:
    """Without consumers, and behind one that stays for ever, the others expire, each at its time."""
    machine = make(dead_letter_exchange="dlx")
    machine.publish(1)
    for ttl in (30, 10, 20):
        machine.publish(1, ttl_ms=ttl)
    machine.publish(1)
    for now, dead in ((10, 3), (20, 4), (30, 2)):
        assert machine.queue.deadline() == now
        clock(machine, now)
        assert machine.dead() == [(dead, "expired")]
    assert (machine.queue.deadline(), machine.queue.ready_count) == (0, 2)
    machine.consumer(now=40)
    assert machine.link.uids() == [1, 5]


def test_dropped_though_there_are_dead_letters(make: Make) -> None:
    """Where the queue's policy says so, what expires is gone; what is rejected is a dead letter all the same."""
    machine = make(table={"alternateExchange": "dlx"})
    machine.publish(2, ttl_ms=10)
    machine.publish(1)
    clock(machine, 10)
    assert (machine.dead(), machine.queue.ready_count) == ([], 1)
    machine.consumer(now=20)
    machine.queue.settle(pb.REJECT, machine.link.uids(), 20)
    assert machine.dead() == [(3, "rejected")]


def test_with_a_time_of_the_queue(make: Make) -> None:
    """A shorter one of its own counts; messages without one expire by the queue's, at any priority."""
    machine = make(message_ttl=100, dead_letter_exchange="dlx")
    machine.publish(1, now=0)
    machine.publish(1, now=10, ttl_ms=20)
    machine.publish(1, now=20, priority=9)
    clock(machine, 30)
    assert machine.dead() == [(2, "expired")]
    clock(machine, 100)
    assert machine.dead() == [(1, "expired")]
    clock(machine, 120)
    assert (machine.dead(), machine.queue.ready_count) == ([(3, "expired")], 0)


def test_the_least_time(make: Make) -> None:
    """It is for messages that say less, and none for those that say nothing; the most is for all."""
    machine = make(message_ttl=50, table={"minimumMessageTtl": 20}, dead_letter_exchange="dlx")
    for ttl in (5, 30, 90, None):
        machine.publish(1, ttl_ms=ttl)
    for now, dead in ((19, []), (20, [1]), (30, [2]), (49, []), (50, [3, 4])):
        clock(machine, now)
        assert sorted(uid for uid, _ in machine.dead()) == dead
    machine = make(table={"minimumMessageTtl": 20})
    machine.publish(1)
    machine.publish(1, ttl_ms=0)
    clock(machine, 20)
    assert (machine.queue.ready_count, machine.queue.deadline()) == (1, 0)


def test_what_comes_back(make: Make) -> None:
    """It expires at the time that it had, behind others that had come back before."""
    machine = make(dead_letter_exchange="dlx")
    gone = machine.consumer(messages=3)
    machine.publish(2)
    machine.publish(1, ttl_ms=50)
    machine.publish(1)
    machine.queue.detach(gone, 0)
    machine.queue.settle(pb.RELEASE, machine.link.uids(), 0)
    clock(machine, 49)
    assert machine.queue.ready_count == 4
    clock(machine, 50)
    assert (machine.dead(), machine.queue.ready_count) == ([(3, "expired")], 3)
    machine.consumer(now=50)
    assert machine.link.uids() == [1, 2, 4]


def test_what_is_held_does_not_expire(make: Make) -> None:
    """Its time is over when it is returned: then no consumer gets it any more."""
    machine = make(dead_letter_exchange="dlx")
    machine.publish(1, ttl_ms=10)
    machine.consumer()
    clock(machine, 20)
    assert machine.dead() == []
    machine.queue.settle(pb.RELEASE, machine.link.uids(), 20)
    assert (machine.dead(), machine.link.uids()) == ([(1, "expired")], [])


def test_many_in_turns(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many go in one; consumers need not wait for what stands behind theirs."""
    monkeypatch.setattr(turn, "SCATTERED", 10)
    machine = make(dead_letter_exchange="dlx")
    machine.publish(1)
    machine.publish(25, ttl_ms=50)
    machine.publish(1)
    for left in (10, 10, 5):
        assert machine.queue.deadline() in {1, 50}
        machine.queue.expire(60)
        assert len(machine.dead()) == left
    assert not machine.queue.lags(60)
    machine.consumer(now=60)
    assert machine.link.uids() == [1, 27]


def test_nothing_is_kept_of_what_has_left(make: Make) -> None:
    """A great many had long to live, and were taken: their times are not remembered until then."""
    machine = make()
    machine.publish(1)
    for _ in range(20):
        machine.publish(50, ttl_ms=1 << 40)
        machine.queue.picking.purge()
        machine.publish(1)
    assert len(machine.queue._entries.expiring._known) <= 100
    assert machine.queue.deadline() in {0, 1}
    machine.queue.expire(1)
    assert machine.queue.deadline() == 0
    assert not machine.queue._entries.expiring._known


@pytest.mark.parametrize("durable", [False, True])
def test_after_a_restart(make: Make, *, durable: bool) -> None:
    """What is recovered expires behind what does not."""
    before, after = make(durable=durable), make(durable=durable, dead_letter_exchange="dlx")
    before.publish(1)
    before.publish(1, ttl_ms=10)
    before.publish(1)
    after.queue.recover(sorted(before.queue.entries(), key=lambda entry: entry.position), 0)
    clock(after, 10)
    assert (after.dead(), after.queue.ready_count) == ([(2, "expired")], 2)


# ------------------------------------------------------------------ beside a naive model

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.lists(st.sampled_from((None, 0, 1, 5, 20)), max_size=6)),
        st.tuples(st.just("pass_time"), st.integers(1, 8)),
        st.tuples(st.just("attach"), st.tuples(st.integers(0, 4), st.booleans())),
        st.tuples(st.just("credit"), st.tuples(st.integers(0, 5), st.integers(1, 3))),
        st.tuples(
            st.just("settle"), st.tuples(st.integers(0, 30), st.sampled_from((pb.ACCEPT, pb.RELEASE, pb.RESTORE)))
        ),
        st.tuples(st.just("get"), st.none()),
        st.tuples(st.just("detach"), st.integers(0, 5)),
        st.tuples(st.just("purge"), st.none()),
    ),
    max_size=40,
)
NEVER = 1 << 60


class Naive(NaiveQueue):
    """A naive model: the messages, which consumer holds each, and when each expires."""

    def __init__(self, machine: Machine, ttl: int | None) -> None:
        super().__init__(machine)
        self.now = 1
        self.ttl = ttl
        self.until: dict[int, int] = {}

    def publish(self, ttls: list[int | None]) -> None:
        for uid, ttl in enumerate(ttls, len(self.until) + 1):
            limits = [each for each in (ttl, self.ttl) if each is not None]
            self.until[uid] = self.now + min(limits) if limits else NEVER
            self.ready.add(uid)
        if ttls:
            kinds = [facts("amq.direct", ttl_ms=ttl, priority=len(self.until) % 3) for ttl in ttls]
            self.machine.publish_mixed(kinds, now=self.now)

    def pass_time(self, ms: int) -> None:
        self.now += ms

    def attach(self, what: tuple[int, bool]) -> None:
        interest = wanting("JMSPriority > 0") if what[1] else None
        self.consumers.append(self.machine.consumer(messages=what[0], interest=interest, now=self.now))

    def get(self, _: None) -> None:
        self.expire()
        entry = self.queue.get(FakeLink(), self.now, settled=True)
        assert (entry is None) == (not self.ready)
        if entry:
            self.ready.remove(entry.message.uid)

    def detach(self, number: int) -> None:
        if self.consumers:
            self.queue.detach(self.consumers.pop(number % len(self.consumers)), self.now)

    def purge(self, _: None) -> None:
        self.expire()
        assert self.queue.picking.purge() == len(self.ready)
        self.ready.clear()

    def expire(self) -> None:
        """Those that wait, and those alone; what consumers got before had time left, or none was lost with it."""
        clock(self.machine, self.now)
        known = {consumer.handle: consumer for consumer in self.consumers}
        for handle, uid, _ in self.machine.link.taken():
            self.ready.remove(uid)
            self.held[uid] = known[handle]
        over = {uid for uid in self.ready if self.until[uid] <= self.now}
        assert {uid for uid, _ in self.machine.dead()} == over
        self.ready -= over
        assert self.queue.ready_count == len(self.ready)
        assert self.queue.deadline() in {0, 1} or self.queue.deadline() > self.now


@pytest.mark.parametrize("kind", plugins.names("queue_types"))
@pytest.mark.parametrize("ttl", [None, 7])
@given(steps=STEPS)
def test_beside_a_naive_model(kind: str, ttl: int | None, steps: list[tuple[str, Any]]) -> None:
    """In any order of events: messages past their time expire then, and no others."""
    limits = {} if ttl is None else {"message_ttl": ttl}
    naive = Naive(Machine(kind, dead_letter_exchange="dlx", **limits, **NEEDS.get(kind, {})), ttl)
    for step, what in steps:
        getattr(naive, step)(what)
        naive.expire()
    for consumer in naive.consumers:
        naive.queue.detach(consumer, naive.now)
    naive.queue.settle(pb.ACCEPT, list(naive.held), naive.now)
    naive.queue.picking.purge()
    assert naive.queue.ready_count == 0
