"""AMQP 1.0, part 2, sections 2.5 to 2.7: links by which a client receives."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.errors import ResourceLocked
from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0.composite import Composite
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.sections import Header
from services.common.message.amqp_1_0.values import Symbol
from services.common.message.facts import Facts
from services.gateway import answers, outcomes
from services.gateway import vocabulary as to_broker
from services.gateway.outcomes import ACCEPTED, FAILED, REJECTED, RELEASED, UNSENT, DeliveryOutcome
from services.gateway.protocols.amqp_1_0.delivered import delivered
from services.gateway.protocols.amqp_1_0.performatives import (
    SETTLED,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
)
from services.gateway.protocols.amqp_1_0.states import Accepted, Modified, Received, Rejected, Released
from tests.support.amqp_1_0_playbook import NEW, Playbook, credit, data, receiving, settled


def test_attach() -> None:
    """Section 2.6.3: the answer says what the source really is, and which outcomes there are."""
    book = Playbook().begun()
    [attach] = book.does(0, receiving("q"))
    assert (attach.role, attach.source.address, attach.initial_delivery_count) == (False, "q", 0)
    assert attach.source.default_outcome == Modified(delivery_failed=True)
    assert "amqp:released:list" in attach.source.outcomes
    consume = book.asked[-1]
    assert isinstance(consume, to_broker.Consume)
    assert (consume.queue, consume.settled, consume.by_credit) == ("q", False, True)


@pytest.mark.parametrize(("address", "key"), [("x", "#"), ("x/a.b", "a.b"), ("/exchanges/x/k", "k")])
def test_from_an_exchange(address: str, key: str) -> None:
    """Section 3.5.3: a link from an exchange has a queue of its own, which goes with it."""
    book = Playbook()
    book.receiver(address)
    declare, bind, consume = book.asked[-3:]
    assert isinstance(declare, to_broker.DeclareQueue)
    assert (declare.exclusive, declare.auto_delete) == (True, True)
    assert isinstance(bind, to_broker.Bind)
    assert (bind.source, bind.destination, bind.routing_key) == ("x", "own", key)
    assert isinstance(consume, to_broker.Consume)
    assert consume.queue == "own"


def test_dynamic() -> None:
    """Section 3.5.3, dynamic: a node is made, and its address told."""
    book = Playbook().begun()
    [attach] = book.does(0, receiving(None, source={"dynamic": True}))
    assert (attach.source.address, attach.source.dynamic) == ("own", True)


@pytest.mark.parametrize(
    "source",
    [
        {"filter": {"selector": "a = 1"}},
        {"address": "x", "durable": 2, "expiry_policy": "never", "capabilities": ("shared",)},
    ],
)
def test_sources_that_are_not_offered(source: dict[str, Any]) -> None:
    """What would change which messages come is refused where it is not there yet, not ignored."""
    book = Playbook().begun()
    address = source.pop("address", "q")
    attach, detach = book.does(0, receiving(address, source=source))
    assert attach.source is None
    assert detach.error.condition == "amqp:not-implemented"


def test_a_queue_that_is_exclusive() -> None:
    """Section 2.8.15: any refusal by the broker ends the link only, and its session goes on."""
    book = Playbook().begun()
    book.refused = {to_broker.Consume: ResourceLocked("exclusive")}
    attach, detach = book.does(0, receiving("q"))
    assert (attach.source, detach.error.condition) == (None, "amqp:resource-locked")
    book.refused = {}
    assert book.does(0, Detach(0, True)) == []
    assert len(book.does(0, receiving("q"))) == 1


def test_transfers() -> None:
    """Section 2.7.5: ids ascend over the session, tags differ, the message is as it was sent."""
    book = Playbook()
    tag = book.receiver()
    book.says(0, credit(10))
    book.deliver(tag, 1, b"a", b"b")
    sent = book.sent()
    assert [(each.handle, each.delivery_id, each.settled, each.message_format) for _, each, _ in sent] == [
        (0, 0, False, 0),
        (0, 1, False, 0),
    ]
    assert len({each.delivery_tag for _, each, _ in sent}) == 2
    assert [payload for *_, payload in sent] == [data(b"a"), data(b"b")]


def test_large_messages() -> None:
    """Section 2.6.14: what does not fit into a frame of the peer's goes in several."""
    book = Playbook().opened(max_frame_size=512)
    tag = book.receiver()
    book.deliver(tag, 1, b"x" * 1500)
    raw = book.raw()
    book.engine._peer.out.append(raw)
    sent = book.sent()
    assert [each.more for _, each, _ in sent] == [True, True, True, False]
    assert b"".join(payload for *_, payload in sent) == data(b"x" * 1500)
    first = int.from_bytes(raw[:4], "big")
    assert first == 512
    assert sent[0][1].delivery_id == 0


def test_redelivered() -> None:
    """Section 3.2.1: the header says how often a message was delivered before, besides what it said when it came."""
    book = Playbook()
    tag = book.receiver()
    book.deliver(tag, 1, b"a", attempts=3)
    [(_, _, payload)] = book.sent()
    assert payload == composite.write(Header(first_acquirer=False, delivery_count=3)) + data(b"a")
    properties, _ = delivered(NEW, composite.write(Header(True, delivery_count=2)), b"", attempts=3)
    assert properties == composite.write(Header(True, first_acquirer=False, delivery_count=5))


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        (Accepted(), ACCEPTED),
        (Rejected(), REJECTED),
        (Released(), RELEASED),
        (Modified(), outcomes.Modified()),
        (Modified(delivery_failed=True), FAILED),
        (Modified(undeliverable_here=True), outcomes.Modified(undeliverable=True)),
        (
            Modified(True, False, {Symbol("x-opt-why"): "late"}),
            outcomes.Modified(True, False, encode({Symbol("x-opt-why"): "late"})),
        ),
        (None, FAILED),
        (Received(0, 0), FAILED),
    ],
)
def test_outcomes(state: Composite | None, outcome: DeliveryOutcome) -> None:
    """Section 3.4: what a receiver says of a delivery that it settles; without an outcome it has failed."""
    book = Playbook()
    tag = book.receiver()
    book.deliver(tag, 1, b"a", b"b", b"c")
    assert settled(book.says(0, Disposition(True, 0, 1, True, state))) == [(1, 2, outcome)]
    assert settled(book.says(0, Disposition(True, 0, 2, True, state))) == [(3, 3, outcome)]
    assert settled(book.says(0, Disposition(True, 0, 900, True, state))) == []


def test_why_a_message_is_rejected() -> None:
    """Section 3.4.3, error: goes to the broker with the outcome; a description may be as long as its peer likes."""
    book = Playbook()
    tag = book.receiver()
    book.deliver(tag, 1, b"a", b"b", b"c")
    errors = Error(Symbol("x:bad"), "no such order"), Error(Symbol("x:bad"), "é" * 9999), Error(Symbol("x:bad"))
    texts = []
    for number, error in enumerate(errors):
        [(_, _, outcome)] = settled(book.says(0, Disposition(True, number, None, True, Rejected(error))))
        assert isinstance(outcome, outcomes.Rejected)
        assert outcome.error
        texts.append(outcome.error.text)
    assert [texts[0], texts[2]] == ["x:bad: no such order", "x:bad"]
    assert len(texts[1]) < 400


def test_a_receiver_that_settles_second() -> None:
    """Section 2.6.12: an outcome that is not settled is settled by us; a state that ends nothing is not."""
    book = Playbook()
    tag = book.receiver()
    book.deliver(tag, 1, b"a")
    book.answers()
    assert book.does(0, Disposition(True, 0, None, False, Received(0, 0))) == []
    assert book.does(0, Disposition(True, 0, None, False, Accepted())) == [
        Disposition(False, 0, None, True, Accepted())
    ]


def test_settled_by_being_sent() -> None:
    """Section 2.8.2: a link in sender-settle-mode settled has nothing to settle."""
    book = Playbook()
    tag = book.receiver(snd_settle_mode=SETTLED)
    book.deliver(tag, 1, b"a")
    [(_, transfer, _)] = book.sent()
    assert transfer.settled
    assert settled(book.says(0, Disposition(True, 0, None, True, Accepted()))) == []


def test_the_peers_window() -> None:
    """Section 2.5.6: what the peer has no room for waits, and the broker is asked for no more."""
    book = Playbook()
    tag = book.receiver(window=2)
    book.deliver(tag, 1, b"a", b"b", b"c")
    assert [payload for *_, payload in book.sent()] == [data(b"a"), data(b"b")]
    assert book.asked[-1] == to_broker.Room(1, False)
    book.deliver(tag, 4, b"d")
    assert book.answers() == []
    book.says(0, Flow(1, 2, 0, 1))
    assert [payload for *_, payload in book.sent()] == [data(b"c")]
    book.says(0, Flow(3, 5, 0, 1))
    assert [payload for *_, payload in book.sent()] == [data(b"d")]
    assert book.asked[-1] == to_broker.Room(1, True)


def test_a_link_ends_while_the_window_is_shut() -> None:
    """Section 2.7.5: of a link that has ended nothing more goes out, and the ids of the others have no gap."""
    book = Playbook()
    first = book.receiver(window=2)
    book.does(0, receiving("q", 1))
    second = book.asked[-1].tag
    book.deliver(first, 1, b"a", b"b", b"c", b"d")
    book.deliver(second, 5, b"e")
    book.answers()
    asked = book.says(0, Detach(0, True))
    assert settled(asked) == [(1, 2, FAILED), (3, 4, UNSENT)]
    book.says(0, Flow(2, 9, 0, 1))
    detach, transfer = book.answers()
    assert detach == Detach(0, True)
    assert (transfer.handle, transfer.delivery_id) == (1, 2)
    assert book.asked[-1] == to_broker.Room(1, True)
    assert settled(book.says(0, Disposition(True, 2, None, True, Accepted()))) == [(5, 5, ACCEPTED)]


def test_the_only_link_ends_while_the_window_is_shut() -> None:
    """Others are not kept waiting by what was for it, and its last message is cut off where it was."""
    book = Playbook().opened(max_frame_size=512)
    tag = book.receiver(window=2)
    book.deliver(tag, 1, b"x" * 1500, b"y")
    assert len(book.answers()) == 2
    asked = book.says(0, Detach(0, True))
    assert settled(asked) == [(1, 1, FAILED), (2, 2, UNSENT)]
    assert to_broker.Room(1, True) in asked
    assert book.answers() == [Detach(0, True)]


def test_a_message_goes_on_when_the_window_opens() -> None:
    """Section 2.6.14: a delivery of several frames may take several windows."""
    book = Playbook().opened(max_frame_size=512)
    tag = book.receiver(window=1)
    book.deliver(tag, 1, b"x" * 1500, b"y")
    sent = book.sent()
    for seen in range(1, 6):
        book.says(0, Flow(seen, 1, 0, 1))
        sent += book.sent()
    assert b"".join(payload for *_, payload in sent[:4]) == data(b"x" * 1500)
    assert [(each.delivery_id, each.more) for _, each, _ in sent[3:]] == [(None, False), (1, False)]
    assert book.asked[-1] == to_broker.Room(1, True)


def test_ids_go_round() -> None:
    """Section 2.8.10: ids are serial numbers, and what is settled by them is found when they have begun anew."""
    book = Playbook()
    tag = book.receiver()
    book.engine._sessions[0].deliveries._next = (1 << 32) - 1
    book.deliver(tag, 1, b"a", b"b")
    assert [each.delivery_id for each in book.answers()] == [(1 << 32) - 1, 0]
    assert settled(book.says(0, Disposition(True, (1 << 32) - 1, 0, True, Accepted()))) == [(1, 2, ACCEPTED)]


@pytest.mark.parametrize("end", [End(), Close()], ids=["end", "close"])
def test_a_session_ends_while_the_window_is_shut(end: Composite) -> None:
    """Section 3.4.4: what nobody was sent comes again as it was; an attempt that nobody made is not counted."""
    book = Playbook()
    tag = book.receiver(window=1)
    book.does(0, receiving("q", 1, snd_settle_mode=SETTLED))
    settled_tag = book.asked[-1].tag
    book.deliver(tag, 1, b"a", b"b", b"c")
    book.deliver(settled_tag, 4, b"d")
    book.answers()
    assert settled(book.says(0, end)) == [(2, 3, UNSENT)]


def test_detach() -> None:
    """Section 2.6.6: what a link held when its client ended it is for others, what comes after that too."""
    book = Playbook()
    tag = book.receiver()
    book.deliver(tag, 1, b"a")
    book.answers()
    book.waits = {to_broker.Cancel}
    release, cancel = book.says(0, Detach(0, True))
    assert settled([release]) == [(1, 1, FAILED)]
    assert isinstance(cancel, to_broker.Cancel)
    book.deliver(tag, 2, b"b")
    book.answers()
    book.serve(cancel)
    assert settled(book.asked[-1:]) == [(2, 2, UNSENT)]
    assert book.answers() == [Detach(0, True)]


def test_detach_before_the_link_is_there() -> None:
    """It is made first, and ended then."""
    book = Playbook().begun()
    book.waits = {to_broker.Consume}
    book.says(0, receiving("q"))
    consume = book.asked[-1]
    book.says(0, Detach(0))
    book.serve(consume)
    attach, detach = book.answers()
    assert attach.source.address == "q"
    assert detach == Detach(0)
    assert isinstance(book.asked[-1], to_broker.Cancel)


def test_a_queue_is_deleted() -> None:
    """Section 2.8.15, resource-deleted: its links are told."""
    book = Playbook()
    tag = book.receiver()
    book.engine.cancelled(1, tag)
    [detach] = book.answers()
    assert (detach.closed, detach.error.condition) == (True, "amqp:resource-deleted")
    assert book.does(0, Detach(0, True)) == []


def test_after_the_end() -> None:
    """A session that has ended is sent nothing."""
    book = Playbook()
    tag = book.receiver()
    book.waits = {to_broker.CloseSession}
    book.says(0, End())
    book.deliver(tag, 1, b"a")
    assert book.answers() == []


def test_messages_of_other_protocols() -> None:
    """What was published by another protocol is sent in this one's form, with what both have a name for."""
    book = Playbook()
    tag = book.receiver()
    facts = Facts("/", "", "q", "amqp-0-9", persistent=True, priority=3)
    properties = bytes.fromhex("9080") + b"\x0atext/plain" + b"\x02" + b"\x02m1"  # content type, delivery mode, id
    book.engine.deliver(1, answers.Deliveries(tag, 1, False, [facts], [properties], [b"body"]))
    [(_, _, payload)] = book.sent()
    assert payload.startswith(composite.write(Header(True, 3)))
    assert payload.endswith(data(b"body"))
    assert b"m1" in payload


def test_messages_that_are_too_large() -> None:
    """Section 2.7.3, max-message-size: none larger is sent. The link ends, and says why; that was an attempt."""
    book = Playbook()
    tag = book.receiver(max_message_size=100)
    book.deliver(tag, 1, b"a", b"x" * 100, b"b")
    (_, transfer, payload), (_, detach, _) = book.sent()
    assert (transfer.delivery_id, payload) == (0, data(b"a"))
    assert detach.error.condition == "amqp:link:message-size-exceeded"
    assert settled(book.asked) == [(2, 2, FAILED), (3, 3, UNSENT), (1, 1, FAILED)]


def test_settled_messages_that_are_too_large() -> None:
    """They cannot go back: the others come before the link ends."""
    book = Playbook()
    tag = book.receiver(max_message_size=100, snd_settle_mode=SETTLED)
    book.deliver(tag, 1, b"x" * 100, b"b")
    (_, _, payload), (_, detach, _) = book.sent()
    assert (payload, detach.error.condition) == (data(b"b"), "amqp:link:message-size-exceeded")
    assert settled(book.asked) == []
