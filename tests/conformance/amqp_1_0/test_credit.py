"""AMQP 1.0, part 2, section 2.6.7: what either end says that it takes, and how it takes that back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from services.common.message.amqp_1_0 import values as v
from services.gateway import vocabulary as to_broker
from services.gateway.outcomes import UNSENT
from services.gateway.protocols.amqp_1_0.incoming_link import CREDIT
from services.gateway.protocols.amqp_1_0.limits import Amqp10Limits
from services.gateway.protocols.amqp_1_0.performatives import SETTLED, Detach, Disposition, Flow, Transfer
from services.gateway.protocols.amqp_1_0.states import Accepted
from tests.support.amqp_1_0_playbook import Playbook, credit, data, receiving, sending, settled, transfer


def test_credit_counts_from_what_was_seen() -> None:
    """Section 2.6.7: what is on its way when credit is given uses it."""
    book = Playbook()
    tag = book.receiver()
    [asked] = book.says(0, credit(3))
    assert isinstance(asked, to_broker.Credit)
    assert (asked.tag, asked.up_to) == (tag, 3)
    book.deliver(tag, 1, b"a", b"b")
    book.answers()
    [asked] = book.says(0, credit(3, 1))
    assert isinstance(asked, to_broker.Credit)
    assert asked.up_to == 4
    [asked] = book.says(0, credit(0, 2))
    assert isinstance(asked, to_broker.Credit)
    assert asked.up_to == 2


def test_credit_from_a_count_that_is_ahead() -> None:
    """Section 2.6.7: a receiver has seen no more than was sent. No next owner could take credit beyond 32 bits."""
    book = Playbook()
    book.receiver()
    book.says(0, credit(0xFFFFFFFF))
    assert book.says(0, credit(0xFFFFFFFF, 5)) == []
    [asked] = book.says(0, credit(7, 5))
    assert isinstance(asked, to_broker.Credit)
    assert asked.up_to == 7


def test_credit_before_the_link_is_there() -> None:
    """Section 2.6.7: credit that a client gives before the attach is answered counts."""
    book = Playbook().begun()
    book.waits = {to_broker.Consume}
    book.says(0, receiving("q"))
    [_, consume] = book.asked[-2:]
    assert book.says(0, credit(5)) == []
    book.serve(consume)
    asked = book.asked[-1]
    assert isinstance(asked, to_broker.Credit)
    assert asked.up_to == 5


def test_drain() -> None:
    """Section 2.6.7: drain sends waiting messages, then uses up all credit, and says so."""
    book = Playbook()
    tag = book.receiver()
    book.waits = {to_broker.Credit}
    [drain] = book.says(0, credit(10, drain=True))
    assert isinstance(drain, to_broker.Credit)
    assert (drain.up_to, drain.drain) == (10, True)
    book.deliver(tag, 1, b"a")
    assert [type(each) for each in book.answers()] == [Transfer]
    book.serve(drain)
    [flow] = book.answers()
    assert (flow.delivery_count, flow.link_credit, flow.drain) == (10, 0, True)
    [asked] = book.says(0, credit(5, 10))
    assert isinstance(asked, to_broker.Credit)
    assert asked.up_to == 6  # one was delivered, five more are wanted


def test_credit_while_draining() -> None:
    """A drain that is taken back uses nothing up."""
    book = Playbook()
    book.receiver()
    book.waits = {to_broker.Credit}
    [drain] = book.says(0, credit(10, drain=True))
    book.says(0, credit(20))
    book.serve(drain)
    assert book.answers() == []


def test_drain_while_the_window_is_shut() -> None:
    """Section 2.6.7: what is on its way comes before the word that there is no more, and is counted once."""
    book = Playbook()
    tag = book.receiver(window=1)
    book.waits = {to_broker.Credit}
    [drain] = book.says(0, credit(10, drain=True, window=1))
    book.deliver(tag, 1, b"a", b"b")
    book.answers()
    book.serve(drain)
    assert book.answers() == []
    book.says(0, Flow(1, 1, 0, 1))
    transfer, flow = book.answers()
    assert transfer.delivery_id == 1
    assert (flow.delivery_count, flow.link_credit, flow.drain) == (10, 0, True)


def test_a_drain_that_is_said_again() -> None:
    """The broker has not answered yet: that nothing more is there would be wrong, and what comes beyond the credit."""
    book = Playbook()
    tag = book.receiver()
    book.waits = {to_broker.Credit}
    [drain] = book.says(0, credit(10, drain=True))
    book.deliver(tag, 1, b"a", b"b")
    book.answers()
    assert book.says(0, credit(8, 2, drain=True)) == []
    assert book.answers() == []
    book.deliver(tag, 3, b"c")
    assert [type(each) for each in book.answers()] == [Transfer]
    book.serve(drain)
    [flow] = book.answers()
    assert (flow.delivery_count, flow.link_credit) == (10, 0)


def test_a_drain_is_said_again_while_the_window_is_shut() -> None:
    """Its end is told once, behind what is on its way; nothing is kept for each time."""
    book = Playbook()
    tag = book.receiver(window=1)
    book.says(0, credit(3, window=1))
    book.deliver(tag, 1, b"a", b"b")
    book.answers()
    asked = [each for _ in range(5) for each in book.says(0, credit(2, 1, drain=True, window=0, seen=1))]
    assert len(asked) == 1
    book.says(0, Flow(1, 5, 0, 1))
    transfer, flow = book.answers()
    assert transfer.delivery_id == 1
    assert (flow.delivery_count, flow.link_credit) == (3, 0)


def test_a_drain_is_taken_back_for_the_same_credit() -> None:
    """The broker hears of it, and what it says of the drain uses nothing up."""
    book = Playbook()
    book.receiver()
    book.waits = {to_broker.Credit}
    [drain] = book.says(0, credit(10, drain=True))
    [asked] = book.says(0, credit(10))
    assert isinstance(asked, to_broker.Credit)
    assert (asked.up_to, asked.drain) == (10, False)
    book.serve(drain)
    assert book.answers() == []
    [drain] = book.says(0, credit(10, drain=True))
    book.serve(drain)
    [flow] = book.answers()
    assert (flow.delivery_count, flow.link_credit) == (10, 0)


def test_how_much_credit_is_left_when_more_came() -> None:
    """Never less than none, which could not be said."""
    book = Playbook()
    tag = book.receiver()
    book.deliver(tag, 1, b"a")
    book.answers()
    [flow] = book.does(0, Flow(0, 1 << 20, 0, 1, 0, echo=True))
    assert flow.link_credit == 0
    assert flow.available is None  # what the queue has is not known here


def test_credit_is_taken_back_while_the_window_is_shut() -> None:
    """What has not gone out does not any more: others may have it, and it has used nothing of the credit."""
    book = Playbook()
    tag = book.receiver(window=2)
    book.says(0, credit(5, window=2))
    book.deliver(tag, 1, b"a", b"b", b"c", b"d", b"e")
    book.answers()
    unsent, less = book.says(0, credit(1, 2, window=0, seen=2))
    assert settled([unsent]) == [(4, 5, UNSENT)]
    assert isinstance(less, to_broker.Credit)
    assert less.up_to == 3
    assert book.does(0, Flow(2, 0, 0, 1)) == []
    assert [payload for _, _, payload in _after(book, Flow(2, 9, 0, 1))] == [data(b"c")]
    assert book.asked[-1] == to_broker.Room(1, True)


def test_what_comes_after_credit_was_taken_back() -> None:
    """The broker may give more before it has come to that: none goes out behind the answer, others may have it."""
    book = Playbook()
    tag = book.receiver()
    [asked] = book.says(0, credit(5))
    assert isinstance(asked, to_broker.Credit)
    book.deliver(tag, 1, b"a")
    book.answers()
    [flow] = book.does(0, credit(1, 1, seen=1, echo=True))
    assert (flow.delivery_count, flow.link_credit) == (1, 1)
    before = len(book.asked)
    book.deliver(tag, 2, b"b", b"c", b"d")
    assert [payload for _, _, payload in book.sent()] == [data(b"b")]
    assert settled(book.asked[before:]) == [(3, 4, UNSENT)]


def _after(book: Playbook, flow: Flow) -> list[tuple[int, Any, bytes]]:
    book.says(0, flow)
    return book.sent()


def test_credit_is_taken_back_with_the_flow_that_opens_the_window() -> None:
    """It counts first."""
    book = Playbook()
    tag = book.receiver(window=1)
    book.says(0, credit(3, window=1))
    book.deliver(tag, 1, b"a", b"b", b"c")
    book.answers()
    assert book.does(0, credit(0, 1, window=9, seen=1)) == []


@pytest.mark.parametrize("link", [{"snd_settle_mode": SETTLED}, {"source": {"distribution_mode": "copy"}}])
def test_what_cannot_go_back_waits_for_credit(link: dict[str, Any]) -> None:
    """What is settled, or a copy, comes when there is credit again, in its order, and keeps nobody waiting."""
    book = Playbook()
    tag = book.receiver(window=1, **link)
    book.does(0, receiving("q", 1))
    other = book.asked[-1].tag
    book.says(0, credit(3, window=1))
    book.deliver(tag, 1, b"a", b"b", b"c")
    book.answers()
    assert settled(book.says(0, credit(0, 1, window=0, seen=1, drain=True))) == []
    [flow] = book.answers()
    assert (flow.delivery_count, flow.link_credit) == (1, 0)
    assert _after(book, Flow(1, 9, 0, 1)) == []
    book.deliver(other, 4, b"d")
    assert [payload for _, _, payload in book.sent()] == [data(b"d")]
    sent = _after(book, credit(2, 1, window=9, seen=2))
    assert [payload for _, _, payload in sent] == [data(b"b"), data(b"c")]


def test_links_take_turns_when_the_window_opens() -> None:
    """Section 2.5.6: one window for all links of a session; none has all of it."""
    book = Playbook()
    first = book.receiver(window=1)
    book.does(0, receiving("q", 1))
    second = book.asked[-1].tag
    book.deliver(first, 1, b"a", b"b", b"c")
    book.deliver(second, 4, b"d", b"e")
    book.answers()
    sent = _after(book, Flow(1, 3, 0, 1))
    assert [payload for _, _, payload in sent] == [data(b"b"), data(b"d"), data(b"c")]


def test_publishers_are_held_back() -> None:
    """Section 2.6.7: by their credit. Who receives as well has to be read on, or would make no room for itself."""
    book = Playbook().sender()
    book.does(0, receiving("q", 1))
    tag = book.asked[-1].tag  # type: ignore[attr-defined]
    book.says(0, transfer(0), data())
    book.engine.blocked("a queue is full")
    [flow] = book.answers()
    assert (flow.handle, flow.delivery_count, flow.link_credit) == (0, 1, 0)
    assert book.engine.holds_back
    [publish] = book.says(0, transfer(1), data())
    assert isinstance(publish, to_broker.Publish)  # it was on its way
    [attach] = book.does(0, sending("q", 2))
    assert attach.target is not None
    book.deliver(tag, 1, b"a")
    book.answers()
    assert any(
        isinstance(each, to_broker.Settle) for each in book.says(0, Disposition(True, 0, None, True, Accepted()))
    )
    book.engine.blocked(None)
    assert [(each.handle, each.delivery_count, each.link_credit) for each in book.answers()] == [
        (0, 2, CREDIT),
        (2, 0, CREDIT),
    ]


def test_what_is_not_sent_to_queues_does_not_count() -> None:
    """A consumer that settles for long, while it is blocked, may publish late all the same."""
    book = Playbook(Amqp10Limits(frame_max=1 << 20)).sender()
    book.engine.blocked("a queue is full")
    for _ in range(20):
        book.does(0, replace(receiving("q", 1), properties={v.Symbol("p"): "x" * 100_000}))
        book.does(0, Detach(1, True))
    book.says(0, transfer(0), data())
    assert book.engine.holds_back


def test_a_publisher_that_is_not_held_back_by_its_credit() -> None:
    """It may use what it was given, and no more is renewed; when that is much, it is to be read no further."""
    book = Playbook(Amqp10Limits(frame_max=1 << 20)).sender()
    book.engine.blocked("a queue is full")
    book.answers()
    for number in range(9):
        book.says(0, transfer(number), data(b"x" * 125_000))
    assert not book.engine.holds_back
    for number in range(9, CREDIT):
        assert book.does(0, transfer(number, settled=True), data()) == []
    [detach] = book.does(0, transfer(CREDIT), data())
    assert detach.error.condition == "amqp:link:transfer-limit-exceeded"
