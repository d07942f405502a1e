"""Consumers that do not want everything, beside others that do."""

from __future__ import annotations

from operator import mul
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from services.common import plugins
from services.common.selectors.selector import selector
from services.queue.machine import turn
from services.queue.machine.consumers import Consumer
from services.queue.machine.delivery.interest import Interest
from services.rpc import queue_pb2 as pb
from tests.contract.queue_types.conftest import NEEDS
from tests.support.messages import facts
from tests.support.naive_queue import NaiveQueue
from tests.support.queue_machine import FakeLink, Machine, Make

COLOURS = ("red", "green", "blue")
SELECTORS = (None, "colour = 'red'", "colour = 'green' AND size > 1", "colour <> 'red'", "size > 1", "other = 1")


def wanting(text: str | None) -> Interest | None:
    return None if text is None else Interest(selector(text))


def test_each_gets_what_it_wants(make: Make) -> None:
    """Messages that no selector matches stay, and a consumer without a selector gets every message."""
    machine, red, green = make(), FakeLink(), FakeLink()
    machine.consumer(link=red, interest=wanting("colour = 'red'"))
    machine.consumer(link=green, interest=wanting("colour LIKE 'g%'"))
    machine.publish_with("colour", "green", "red", "blue", None, "red")
    assert (red.uids(), green.uids(), machine.queue.ready_count) == ([2, 5], [1], 2)
    machine.consumer()
    assert machine.link.uids() == [3, 4]


def test_what_waits_already(make: Make) -> None:
    """A newcomer is given it in order, also past what others do not want."""
    machine = make()
    machine.publish_with("colour", *["blue"] * 300, "red", *["blue"] * 300, "red")
    machine.consumer(interest=wanting("colour = 'red'"))
    assert machine.link.uids() == [301, 602]
    machine.consumer(interest=wanting("colour = 'blue'"), messages=3)
    assert machine.link.uids() == [1, 2, 3]


@pytest.mark.parametrize("text", ["colour = 'red'", "colour LIKE 'red'"])
def test_what_comes_back(make: Make, text: str) -> None:
    """A returned message goes to the consumer that selects it and is past its place, first, once that has credit."""
    machine, gone = make(), FakeLink()
    machine.consumer(link=gone, messages=1)
    machine.publish_with("colour", "red")
    chooser = machine.consumer(interest=wanting(text), messages=1)
    machine.publish_with("colour", "red", "red", "blue")
    assert (gone.uids(), machine.link.uids()) == ([1], [2])
    machine.queue.settle(pb.RELEASE, [1], 0)
    assert machine.link.uids() == []
    machine.queue.credit(chooser, 2, 0, 0)
    assert machine.link.taken() == [(chooser.handle, 1, True), (chooser.handle, 3, False)]


def test_priority_of_consumers(make: Make) -> None:
    """The higher one has all that it wants, as long as it has credit; equals take turns."""
    machine, high, low = make(), FakeLink(), FakeLink()
    machine.consumer(link=high, priority=1, messages=2, interest=wanting("colour = 'red'"))
    one, other = (machine.consumer(link=low) for _ in range(2))
    machine.publish_with("colour", "red", "blue", "red", "red", "blue")
    assert high.uids() == [1, 3]
    assert sorted(low.taken()) == [(one.handle, 2, False), (one.handle, 5, False), (other.handle, 4, False)]


def test_a_browser_that_chooses(make: Make) -> None:
    """It sees what it wants, and takes nothing."""
    machine, seeing = make(), FakeLink()
    machine.publish_with("colour", "red", "blue")
    machine.consumer(link=seeing, browse=True, interest=wanting("colour = 'red'"))
    machine.publish_with("colour", "blue", "red")
    assert (seeing.uids(), machine.queue.ready_count) == ([1, 4], 4)


def test_its_own(make: Make) -> None:
    """What came on its connection a consumer is not given, though it selects it; others are, as it is next."""
    machine, own, selects = make(), FakeLink(), FakeLink()
    machine.consumer(link=own, interest=Interest(None, "1.1"))
    machine.consumer(link=selects, priority=1, interest=Interest(selector("JMSPriority > 1"), "1.1"))
    for publisher, priority in (("1.1", 2), ("1.2", 2), ("", 0), ("1.1", 0)):
        machine.publish_mixed([facts("amq.direct", priority=priority, publisher=publisher)])
    assert (own.uids(), selects.uids(), machine.queue.ready_count) == ([3], [2], 2)
    machine.consumer(interest=Interest(None, "1.2"))
    assert machine.link.uids() == [1, 4]


def test_immediate(make: Make) -> None:
    """It is refused where no consumer selects it."""
    machine = make()
    machine.consumer(interest=wanting("colour = 'red'"))
    assert machine.publish(2, immediate=True) == [(0, 1, pb.NO_CONSUMERS), (1, 1, pb.NO_CONSUMERS)]
    assert (machine.queue.ready_count, machine.account.used) == (0, 0)


def test_expired_ones(make: Make) -> None:
    """No consumer gets them, wherever they are in the queue."""
    machine = make(dead_letter_exchange="dlx")
    machine.publish(1)
    machine.publish(1, ttl_ms=10)
    machine.consumer(interest=wanting("colour = 'red'"), now=5)
    machine.consumer(now=20)
    assert (machine.link.uids(), machine.dead()) == ([1], [(2, "expired")])


def test_expired_behind_others(make: Make) -> None:
    """An unselected message expires at its time, though messages before it stay."""
    machine = make(dead_letter_exchange="dlx")
    machine.consumer(interest=wanting("colour = 'red'"))
    machine.publish(1)
    machine.publish(2, ttl_ms=10)
    machine.publish(1, ttl_ms=30)
    assert machine.queue.deadline() == 10
    machine.queue.expire(20)
    assert machine.dead() == [(2, "expired"), (3, "expired")]
    assert (machine.queue.deadline(), machine.queue.ready_count) == (30, 2)


def test_the_last_one_has_gone(make: Make) -> None:
    """Then all take what is next again: what has been looked at first, and nothing is left behind."""
    machine = make()
    chooser = machine.consumer(interest=wanting("colour = 'red'"))
    machine.publish_with("colour", "blue", "green", "blue")
    machine.queue.detach(chooser, 0)
    machine.publish_with("colour", "blue")
    machine.consumer(messages=2)
    assert machine.link.uids() == [1, 2]
    machine.consumer()
    machine.publish_with("colour", "blue")
    assert machine.link.uids() == [3, 4, 5]


def test_one_active(make: Make) -> None:
    """Only the active one is asked what it wants."""
    machine, second = make(single_active_consumer=True), FakeLink()
    machine.consumer(interest=wanting("colour = 'red'"))
    machine.consumer(link=second)
    machine.publish_with("colour", "blue", "red")
    assert (machine.link.uids(), second.uids(), machine.queue.ready_count) == ([2], [], 1)


def test_more_than_goes_in_one_turn(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes on with it, and no consumer waits for it in vain."""
    monkeypatch.setattr(turn, "LOOKS", 10)
    machine = make()
    machine.publish_with("colour", *["blue"] * 95, "red")
    machine.consumer(interest=wanting("colour LIKE 'red'"))
    turns = settled_down(machine)
    assert machine.link.uids() == [96]
    assert 0 < turns <= 10
    assert not machine.queue.deadline()


def settled_down(machine: Machine) -> int:
    """The clock's turns until nothing is left to look at: so many."""
    turns = 0
    while machine.queue.unfinished:
        assert machine.queue.deadline() == 1
        machine.queue.expire(0)
        machine.queue.dispatch(0)
        turns += 1
    return turns


# ------------------------------------------------------------------ beside a naive model

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.lists(st.tuples(st.sampled_from(COLOURS), st.integers(1, 2)), max_size=6)),
        st.tuples(st.just("publish"), st.builds(mul, st.just([("blue", 1)]), st.integers(7, 30))),
        st.tuples(st.just("attach"), st.tuples(st.sampled_from(SELECTORS), st.integers(0, 4), st.booleans())),
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


class Naive(NaiveQueue):
    """A naive model: messages, holders and selectors, without an order but that of a consumer's own deliveries."""

    def __init__(self, machine: Machine, *, in_order: bool) -> None:
        """`in_order`: of arrival."""
        self._in_order = in_order
        self._last: dict[int, int] = {}  # delivered for the first time, by consumer
        super().__init__(machine)
        self.messages: dict[int, dict[str, Any]] = {}
        self.seen: dict[int, set[int]] = {}  # by browsers, which need not see what was returned

    def publish(self, those: list[tuple[str, int]]) -> None:
        first = len(self.messages) + 1
        for uid, (colour, size) in enumerate(those, first):
            self.messages[uid] = {"colour": colour, "size": size}
            self.ready.add(uid)
        if those:
            self.machine.publish_headers(self.messages[uid] for uid in range(first, first + len(those)))

    def attach(self, what: tuple[str | None, int, bool]) -> None:
        text, credit, browse = what
        consumer = self.machine.consumer(messages=credit, interest=wanting(text), browse=browse, settled=browse)
        self.consumers.append(consumer)
        self.seen[consumer.handle] = set()

    def get(self, _: None) -> None:
        entry = self.queue.get(self.machine.link, 0, settled=True)
        assert (entry is None) == (not self.ready)
        if entry:
            self.ready.remove(entry.message.uid)

    def detach(self, number: int) -> None:
        if self.consumers:
            self.queue.detach(self.consumers.pop(number % len(self.consumers)), 0)

    def purge(self, _: None) -> None:
        assert self.queue.picking.purge() == len(self.ready)
        self.ready.clear()

    def compare(self) -> None:
        """Deliveries are selected, and were in the queue; no message waits that a consumer with credit selects."""
        settled_down(self.machine)
        known = {consumer.handle: consumer for consumer in self.consumers}
        for handle, uid, _ in self.machine.link.taken():
            assert self.wants(known[handle], uid)
            if known[handle].browse:
                self.seen[handle].add(uid)
            else:
                self.take(known[handle], uid)
        assert self.queue.ready_count == len(self.ready)
        for consumer in self.consumers:
            if consumer.ready:
                wanted = {uid for uid in self.ready if self.wants(consumer, uid)}
                assert wanted <= self.seen[consumer.handle] | self.back if consumer.browse else not wanted

    def take(self, consumer: Consumer, uid: int) -> None:
        self.ready.remove(uid)
        self.held[uid] = consumer
        if uid not in self.back:
            assert not self._in_order or uid > self._last.get(consumer.handle, 0)
            self._last[consumer.handle] = uid

    def wants(self, consumer: Consumer, uid: int) -> bool:
        return consumer.interest is None or consumer.interest._selector.selects(self.messages[uid].get)  # type: ignore[union-attr]


FEW_OR_MANY = st.sampled_from((5, 8, 20, 1000))


@pytest.mark.parametrize("kind", plugins.names("queue_types"))
@given(steps=STEPS, looks=FEW_OR_MANY)
def test_beside_a_naive_model(kind: str, steps: list[tuple[str, Any]], looks: int) -> None:
    """In any order of events: each consumer gets what it selects, nothing twice, and nothing waits without need.

    However little goes in one turn.
    """
    naive = Naive(Machine(kind, **NEEDS.get(kind, {})), in_order=kind == "classic")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turn, "LOOKS", looks)
        follow(naive, steps)


def follow(naive: Naive, steps: list[tuple[str, Any]]) -> None:
    for step, what in steps:
        getattr(naive, step)(what)
        naive.compare()
    for consumer in naive.consumers:
        naive.queue.detach(consumer, 0)
    naive.queue.settle(pb.ACCEPT, list(naive.held), 0)
    naive.queue.picking.purge()
    assert naive.machine.account.used == naive.queue.holding.size == 0
