"""What may not be delivered yet stands aside, in a queue that holds, and is a message like others in all else."""

from __future__ import annotations

from functools import partial
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from services.common import plugins
from services.queue.machine import turn
from services.queue.machine.entry import Entry
from services.rpc import queue_pb2 as pb
from tests.contract.queue_types.conftest import NEEDS
from tests.contract.queue_types.test_choosing import wanting
from tests.contract.queue_types.test_expiring import clock
from tests.support.messages import facts
from tests.support.naive_queue import NaiveQueue
from tests.support.queue_machine import FakeLink, Machine, Make

HOLDS = {"holdOnPublishEnabled": True}


def publish(machine: Machine, *times: int | None, now: int = 0, ttl: int | None = None, **more: Any) -> list[Any]:
    """A message for each, that is not to be delivered before that."""
    kinds = [facts("amq.direct", not_before=each, ttl_ms=ttl) for each in times]
    return machine.publish_mixed(kinds, now=now, **more)


@pytest.mark.parametrize("text", [None, "JMSPriority >= 0"])
def test_each_at_its_time(make: Make, text: str | None) -> None:
    """Others go past, consumers choose or not; when its time has come it is delivered, by the clock alone."""
    machine = make(table=HOLDS)
    machine.consumer(interest=None if text is None else wanting(text))
    publish(machine, 50, None, 20, None)
    assert (machine.link.uids(), machine.queue.ready_count, machine.queue.deadline()) == ([2, 4], 2, 20)
    clock(machine, 19)
    assert machine.link.uids() == []
    clock(machine, 20)
    assert (machine.link.uids(), machine.queue.deadline()) == ([3], 50)
    clock(machine, 60)
    assert (machine.link.uids(), machine.queue.deadline(), machine.queue.ready_count) == ([1], 0, 0)


def test_its_place(make: Make) -> None:
    """It has that of its arrival, before what came behind it: as if it had been there all the time."""
    machine = make(table=HOLDS)
    publish(machine, None, 10, None)
    machine.consumer(now=10)
    assert machine.link.uids() == [1, 2, 3]


def test_a_time_that_is_past(make: Make) -> None:
    """It is delivered at once; so is everything by a queue that does not hold."""
    for machine in (make(table=HOLDS), make()):
        machine.consumer(now=10)
        publish(machine, 10, 5 if machine.queue.options.holds else 100, now=10)
        assert machine.link.uids() == [1, 2]


def test_consumers_and_browsers(make: Make) -> None:
    """A get and a browser do not see it before; the browser does then."""
    machine = make(table=HOLDS)
    machine.consumer(browse=True, settled=True)
    publish(machine, 10)
    assert machine.queue.get(FakeLink(), 9, settled=True) is None
    assert machine.link.uids() == []
    clock(machine, 10)
    assert machine.link.uids() == [1]
    entry = machine.queue.get(FakeLink(), 10, settled=True)
    assert entry is not None
    assert entry.message.uid == 1


def test_it_expires(make: Make) -> None:
    """By its own time to live and by the queue's, which begin when it comes."""
    machine = make(message_ttl=30, table=HOLDS, dead_letter_exchange="dlx")
    publish(machine, 50, None)
    publish(machine, 50, ttl=10)
    clock(machine, 10)
    assert machine.dead() == [(3, "expired")]
    clock(machine, 30)
    assert sorted(machine.dead()) == [(1, "expired"), (2, "expired")]
    assert (machine.queue.ready_count, machine.queue.deadline()) == (0, 0)
    assert machine.queue._entries.aside is not None
    assert not list(machine.queue._entries.aside)


def test_limits_count_it(make: Make) -> None:
    """A queue is full of what waits for its time; who comes first goes first, whether it waits or not."""
    machine = make(max_length=2, overflow="reject-publish", table=HOLDS)
    machine.consumer(messages=9)
    assert publish(machine, 10, None, 10, 10) == [(3, 1, pb.OVERFLOW)]
    assert machine.link.uids() == [2]
    machine = make(max_length=2, table=HOLDS, dead_letter_exchange="dlx")
    publish(machine, 20, 10, None)
    assert machine.dead() == [(1, "maxlen")]
    publish(machine, 30, None)
    assert machine.dead() == [(2, "maxlen"), (3, "maxlen")]
    machine.consumer(now=30)
    assert machine.link.uids() == [4, 5]


@pytest.mark.parametrize("text", [None, "JMSPriority > 99"])
def test_the_first_in_the_order_goes(make: Make, text: str | None) -> None:
    """Of a queue with too much: by the order that its type has, with consumers that choose too."""
    machine = make(max_length_bytes=12, table=HOLDS, dead_letter_exchange="dlx")
    if text:
        machine.consumer(interest=wanting(text))
    left: list[tuple[int, int]] = []  # in the order of the type
    for uid, time in enumerate((30, None, 20, None, 10, None, 40, None), 1):
        machine.publish_mixed([facts("q", not_before=time, priority=uid % 3)])
        left = sorted([*left, (-(uid % 3) if machine.queue.options.max_priority else 0, uid)])
        assert machine.dead() == ([(left.pop(0)[1], "maxlen")] if uid > 3 else [])


def test_no_room_but_for_who_takes_it(make: Make) -> None:
    """What a consumer takes at once needs none, unless it has to wait."""
    machine = make(max_length=0, overflow="reject-publish", table=HOLDS)
    machine.consumer(now=9)
    assert publish(machine, None, 10, 9, now=9) == [(1, 2, pb.OVERFLOW)]
    assert publish(machine, 9, now=9) == []
    assert machine.link.uids() == [1, 4]


def test_immediate(make: Make) -> None:
    """What cannot be delivered now is refused."""
    machine = make(table=HOLDS)
    machine.consumer()
    assert publish(machine, None, 10, immediate=True) == [(1, 1, pb.NO_CONSUMERS)]
    assert (machine.link.uids(), machine.queue.ready_count) == ([1], 0)


def test_purge_and_end(make: Make) -> None:
    """It goes with the others, in parts too."""
    machine = make(table=HOLDS)
    publish(machine, 10, None, 20, 30)
    assert machine.queue.picking.purge(2) == 2
    assert machine.queue.picking.purge() == 2
    publish(machine, 10, None)
    assert machine.queue.end(durable=False) == 2
    assert machine.account.used == machine.queue.holding.size == 0


@pytest.mark.parametrize("text", [None, "JMSPriority > 99"])
def test_a_purge_of_what_was_there(make: Make, text: str | None) -> None:
    """What comes between its parts stays, however early in the order it is, and whether it waits for its time."""
    machine = make(table=HOLDS)
    if text:
        machine.consumer(interest=wanting(text))
    publish(machine, None, 10, None, 20)
    before = machine.queue.picking.next_position
    machine.publish(2, priority=9)
    publish(machine, 5)
    assert [machine.queue.picking.purge(3, before) for _ in range(3)] == [3, 1, 0]
    assert {entry.message.uid for entry in machine.queue.entries()} == {5, 6, 7}
    assert machine.queue.picking.purge() == 3
    assert machine.account.used == machine.queue.holding.size == 0


def test_the_next_owner(make: Make) -> None:
    """It takes the times from the facts; what a client reports to hold is its own, at any time."""
    before, after = make(table=HOLDS), make(table=HOLDS)
    publish(before, 50, None, 60)
    entries = sorted(before.queue.entries(), key=lambda entry: entry.position)
    after.queue.recover([Entry(entry.message, entry.position) for entry in entries], 0)
    after.queue.claim([3], FakeLink(), 0)
    after.consumer()
    assert after.link.uids() == [2]
    clock(after, 70)
    assert after.link.uids() == [1]
    assert set(after.queue.unsettled) == {1, 2, 3}


def test_told_in_order(make: Make) -> None:
    """The next owner hears of them as they came: the same in each run, not as the machine's memory has it."""
    machine = make(table=HOLDS)
    publish(machine, *range(100, 0, -1))
    assert [entry.message.uid for entry in machine.queue.entries()] == list(range(1, 101))


@pytest.mark.parametrize("text", [None, "JMSPriority >= 0"])
def test_the_order_of_many_that_are_due(make: Make, monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    """That of their arrival, also with the next owner, and where their times had come when they came."""
    monkeypatch.setattr(turn, "SCATTERED", 3)
    interest = wanting(text) if text else None
    before, after = make(table=HOLDS), make(table=HOLDS)
    publish(before, *range(20, 10, -1))
    clock(before, 20)
    entries = sorted(before.queue.entries(), key=lambda entry: entry.position)
    after.queue.recover([Entry(entry.message, entry.position) for entry in entries], 20)
    for machine in (before, after):
        machine.consumer(now=20, interest=interest)
        assert machine.link.uids() == list(range(1, 11))
    publish(before, *range(20, 10, -1), now=20)
    assert before.link.uids() == list(range(11, 21))


def test_many_at_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many in a turn; none is forgotten."""
    monkeypatch.setattr(turn, "SCATTERED", 10)
    machine = make(table=HOLDS)
    publish(machine, *[10] * 25)
    machine.consumer()
    machine.queue.expire(10)
    machine.queue.dispatch(10)
    assert len(machine.link.uids()) == 10
    clock(machine, 10)
    assert len(machine.link.uids()) == 15


def test_who_asks_keeps_none_from_others(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A get and a drain release what is due: who has credit gets it, and what is left is due yet."""
    monkeypatch.setattr(turn, "SCATTERED", 10)
    machine = make(table=HOLDS)
    consumer = machine.consumer(messages=15)
    publish(machine, *[10] * 20)
    assert machine.queue.lags(10)
    assert len(machine.link.uids()) == 10
    assert not machine.queue.lags(10)
    assert (len(machine.link.uids()), consumer.messages, machine.queue.deadline()) == (5, 0, 0)
    entry = machine.queue.get(FakeLink(), 10, settled=True)
    assert entry is not None
    machine.queue.credit(consumer, 9, 0, 10)
    assert len(machine.link.uids()) == 4


def test_a_last_value_that_waits() -> None:
    """It replaces the one before when its time has come, and is replaced by what came behind it and is there."""
    machine = Machine("last-value", table={**HOLDS, "qpid.last_value_queue_key": "k"})
    for time in (None, 10, None, 20):
        machine.publish_with("k", "a", not_before=time)
    assert machine.queue.ready_count == 3
    clock(machine, 10)
    assert machine.queue.ready_count == 2
    clock(machine, 20)
    machine.consumer(now=20)
    assert machine.link.uids() == [4]


# ------------------------------------------------------------------ beside a naive model

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("publish"),
            st.lists(st.tuples(st.sampled_from((None, 0, 2, 9)), st.sampled_from((None, 5))), max_size=6),
        ),
        st.tuples(st.just("pass_time"), st.integers(1, 6)),
        st.tuples(st.just("attach"), st.tuples(st.integers(0, 4), st.booleans())),
        st.tuples(st.just("credit"), st.tuples(st.integers(0, 5), st.integers(1, 3))),
        st.tuples(
            st.just("settle"), st.tuples(st.integers(0, 30), st.sampled_from((pb.ACCEPT, pb.RELEASE, pb.RESTORE)))
        ),
        st.tuples(st.just("get"), st.integers(0, 6)),
        st.tuples(st.just("detach"), st.integers(0, 5)),
        st.tuples(st.just("purge"), st.integers(1, 9)),
    ),
    max_size=40,
)
NEVER = 1 << 60


class Naive(NaiveQueue):
    """A naive model: the messages, which consumer holds each, and from when and until when each may be delivered."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.now = 1
        self.since: dict[int, int] = {}
        self.until: dict[int, int] = {}

    def publish(self, those: list[tuple[int | None, int | None]]) -> None:
        kinds = []
        for uid, (delay, ttl) in enumerate(those, len(self.since) + 1):
            self.since[uid] = self.now + (delay or 0)
            self.until[uid] = NEVER if ttl is None else self.now + ttl
            self.ready.add(uid)
            kinds.append(
                facts("q", not_before=None if delay is None else self.since[uid], ttl_ms=ttl, priority=uid % 3)
            )
        if kinds:
            self.machine.publish_mixed(kinds, now=self.now)

    def pass_time(self, ms: int) -> None:
        self.now += ms

    def attach(self, what: tuple[int, bool]) -> None:
        interest = wanting("JMSPriority >= 0") if what[1] else None
        self.consumers.append(self.machine.consumer(messages=what[0], interest=interest, now=self.now))

    def get(self, ms: int) -> None:
        """Before the clock has looked."""
        self.now += ms
        entry = self.queue.get(FakeLink(), self.now, settled=True)
        self.deliver()
        if entry:
            self.ready.remove(entry.message.uid)
        else:
            assert not any(map(self.is_due, self.ready))

    def detach(self, number: int) -> None:
        if self.consumers:
            self.queue.detach(self.consumers.pop(number % len(self.consumers)), self.now)

    def purge(self, most: int) -> None:
        before = {entry.message.uid for entry in self.queue.entries()} - self.held.keys()
        assert self.queue.picking.purge(most) == min(most, len(self.ready))
        after = {entry.message.uid for entry in self.queue.entries()} - self.held.keys()
        self.ready -= before - after

    def is_due(self, uid: int) -> bool:
        return self.since[uid] <= self.now < self.until[uid]

    def deliver(self) -> None:
        known = {consumer.handle: consumer for consumer in self.consumers}
        for handle, uid, _ in self.machine.link.taken():
            assert self.is_due(uid)
            self.ready.remove(uid)
            self.held[uid] = known[handle]

    def compare(self) -> None:
        clock(self.machine, self.now)
        self.deliver()
        assert not self.queue.lags(self.now)
        over = {uid for uid in self.ready if self.until[uid] <= self.now}
        assert {uid for uid, _ in self.machine.dead()} == over
        self.ready -= over
        assert self.queue.ready_count == len(self.ready)
        for consumer in self.consumers:
            assert not (consumer.ready and any(map(self.is_due, self.ready)))


@pytest.mark.parametrize("kind", plugins.names("queue_types"))
@given(steps=STEPS)
def test_beside_a_naive_model(kind: str, steps: list[tuple[str, Any]]) -> None:
    """In any order of events: no message is early, none waits without need, and none is lost."""
    make = partial(Machine, kind, **NEEDS.get(kind, {}))
    naive = Naive(make(table=HOLDS, dead_letter_exchange="dlx"))
    for step, what in steps:
        getattr(naive, step)(what)
        naive.compare()
    naive.queue.end(durable=False)
    letters = naive.machine.context.dead_letters
    assert not letters
    naive.queue.picking.purge()
    assert naive.queue.ready_count == 0
