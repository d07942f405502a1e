"""AMQP 1.0, part 2, sections 2.5 to 2.7: links by which a client sends."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.errors import NotFound, Unavailable
from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.sections import NULL, Header, Properties
from services.gateway import answers, outcomes
from services.gateway import vocabulary as to_broker
from services.gateway.protocols.amqp_1_0.incoming_link import CREDIT
from services.gateway.protocols.amqp_1_0.limits import Amqp10Limits
from services.gateway.protocols.amqp_1_0.performatives import (
    FIRST,
    SECOND,
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Flow,
    Transfer,
)
from services.gateway.protocols.amqp_1_0.states import Accepted, Rejected, Released
from services.gateway.protocols.amqp_1_0.termini import Source, Target
from services.gateway.protocols.amqp_1_0.windows import INCOMING
from services.gateway.sessions.publish_ticket import REFUSED
from tests.support.amqp_1_0_playbook import Playbook, data, framed, sending, transfer


def published(requests: list[to_broker.Request]) -> list[tuple[str, str, bytes]]:
    """Exchange, key and body of what was published."""
    return [
        (kind.facts.exchange, kind.facts.routing_key, body)
        for each in requests
        if isinstance(each, to_broker.Publish)
        for kind, body in zip(each.kinds, each.bodies, strict=True)
    ]


@pytest.mark.parametrize(
    ("address", "exchange", "key"),
    [
        ("q", "", "q"),
        ("/queues/q", "", "q"),
        ("/queue/q", "", "q"),
        ("/amq/queue/q", "", "q"),
        ("x", "x", "subject"),
        ("x/a.b", "x", "a.b"),
        ("x/a/b", "x", "a/b"),
        ("/exchanges/x", "x", "subject"),
        ("/exchanges/x/a%2Fb", "x", "a/b"),
        ("/exchange/x/a/b", "x", "a/b"),
        ("/topic/a.b", "amq.topic", "a.b"),
    ],
)
def test_addresses(address: str, exchange: str, key: str) -> None:
    """Section 3.5.4: a target is a queue or an exchange; without a key each message's subject is one."""
    book = Playbook()
    book.nodes["amq.topic"] = to_broker.Node.EXCHANGE
    book.sender(address)
    message = composite.write(Properties(subject="subject")) + data()
    assert published(book.says(0, transfer(0), message)) == [(exchange, key, data())]


@pytest.mark.parametrize("address", ["nowhere", "/queues/x", "/exchanges/q", "q/key", "/unknown/form", ""])
def test_no_such_node(address: str) -> None:
    """Section 2.6.3: an attach without a target says that there is none, a detach why."""
    book = Playbook().begun()
    attach, detach = book.does(0, sending(address))
    assert (attach.name, attach.target) == (f"to {address}", None)
    assert detach.closed
    assert detach.error.condition in {"amqp:not-found", "amqp:invalid-field"}
    assert book.does(0, Detach(0, True)) == []
    assert len(book.does(0, sending("q"))) == 2  # the handle is free again


def test_facts() -> None:
    """Section 3.2.1: what a broker acts on is the header's."""
    book = Playbook().sender()
    [publish] = book.says(0, transfer(0), composite.write(Header(True, 7, 1000)) + data())
    assert isinstance(publish, to_broker.Publish)
    [kind] = publish.kinds
    assert (kind.facts.persistent, kind.facts.priority, kind.facts.ttl_ms) == (True, 7, 1000)
    assert publish.properties == [composite.write(Header(True, 7, 1000))]


def test_one_read_is_one_request() -> None:
    """Transfers that come together are published together."""
    book = Playbook().sender()
    [publish] = book.receives(b"".join(framed(0, transfer(number), data()) for number in range(30)))
    assert len(published([publish])) == 30


def test_outcomes() -> None:
    """Section 2.7.6: messages that are safe are accepted, in one disposition where they lie together."""
    book = Playbook().sender()
    for number in range(5):
        book.says(0, transfer(number, settled=number == 2), data())
    book.confirm(1, 2)
    assert book.answers() == [Disposition(True, 0, 1, True, Accepted())]
    book.confirm(3, 5)
    assert book.answers() == [Disposition(True, 3, 4, True, Accepted())]


def test_outcomes_out_of_order() -> None:
    """Confirms come in any order."""
    book = Playbook().sender()
    for number in range(3):
        book.says(0, transfer(number), data())
    book.confirm(3, 3)
    book.confirm(1, 1, outcome=REFUSED)
    accepted, rejected = book.answers()
    assert accepted == Disposition(True, 2, None, True, Accepted())
    assert (rejected.first, rejected.state.error.condition) == (0, "amqp:resource-limit-exceeded")


def test_what_cannot_be_routed() -> None:
    """Section 3.4.3: it is rejected, and the others with it are not."""
    book = Playbook().sender("x/k")
    [publish] = book.receives(b"".join(framed(0, transfer(number), data()) for number in range(3)))
    assert isinstance(publish, to_broker.Publish)
    assert all(kind.mandatory for kind in publish.kinds)
    book.engine.returned(1, answers.Returned(publish, [1]))
    book.confirm(1, 2)
    book.confirm(3, 3, outcome=outcomes.Rejected(NotFound("no exchange 'x'")))
    accepted, unrouted, refused = book.answers()
    assert (accepted.first, accepted.last, accepted.state) == (0, None, Accepted())
    assert unrouted.state.error.condition == "amqp:not-found"
    assert refused.state.error.description == "no exchange 'x'"


def test_who_settles_second() -> None:
    """Section 2.6.12: a receiver that settles second says the outcome, and waits."""
    book = Playbook().sender(rcv_settle_mode=SECOND)
    book.says(0, transfer(0), data())
    book.confirm(1, 1)
    assert book.answers() == [Disposition(True, 0, None, False, Accepted())]
    assert book.does(0, Disposition(False, 0, None, True)) == []


def test_a_delivery_says_who_settles_first() -> None:
    """Section 2.7.5, rcv-settle-mode: of a link that settles second a delivery may be settled first, not otherwise."""
    book = Playbook().sender(rcv_settle_mode=SECOND)
    for number, mode in enumerate((FIRST, None, SECOND)):
        book.says(0, transfer(number, rcv_settle_mode=mode), data())
    book.confirm(1, 3)
    assert book.answers() == [
        Disposition(True, 0, None, True, Accepted()),
        Disposition(True, 1, 2, False, Accepted()),
    ]
    book.does(0, sending("q", 1))
    [detach] = book.does(0, transfer(3, 1, rcv_settle_mode=SECOND), data())
    assert detach.error.condition == "amqp:invalid-field"


def test_settled_in_any_frame() -> None:
    """Section 2.7.5, settled: a delivery is settled if one of its transfers says so, and the next one is not."""
    book = Playbook().sender()
    book.says(0, transfer(0, more=True, settled=True), data()[:3])
    book.says(0, Transfer(0), data()[3:])
    book.says(0, transfer(1), data())
    book.confirm(1, 2)
    assert book.answers() == [Disposition(True, 1, None, True, Accepted())]


def test_what_could_not_be_routed_at_the_time() -> None:
    """Section 3.4.4: the router is away; that says nothing against the message, nor against its link."""
    book = Playbook().sender("x/k")
    book.says(0, transfer(0), data())
    book.confirm(1, 1, outcome=outcomes.Released(Unavailable("the router is away")))
    assert book.answers() == [Disposition(True, 0, None, True, Released())]


def test_messages_in_pieces() -> None:
    """Section 2.6.14: transfers with `more` are parts of one message, of which nothing is done before the last."""
    book = Playbook().sender()
    message = data(b"x" * 1000)
    assert book.says(0, transfer(0, more=True), message[:10]) == []
    assert book.engine.incomplete == 10
    assert book.says(0, Transfer(0, more=True), message[10:400]) == []
    assert published(book.says(0, Transfer(0), message[400:])) == [("", "q", message)]
    assert book.engine.incomplete == 0


def test_aborted() -> None:
    """Section 2.6.14: an aborted delivery never was."""
    book = Playbook().sender()
    book.says(0, transfer(0, more=True, settled=True), b"half")
    assert book.says(0, Transfer(0, aborted=True)) == []
    assert book.engine.incomplete == 0
    assert published(book.says(0, transfer(1), data())) == [("", "q", data())]
    book.confirm(1, 1)
    assert book.answers() == [Disposition(True, 1, None, True, Accepted())]


def test_no_message() -> None:
    """A payload that is no message is rejected, and the link goes on (3.2)."""
    book = Playbook().sender()
    [rejected] = book.does(0, transfer(0), b"garbage")
    assert isinstance(rejected.state, Rejected)
    assert rejected.state.error.condition == "amqp:decode-error"
    assert book.does(0, transfer(1, settled=True), b"garbage") == []
    assert published(book.says(0, transfer(2), data()))


def test_no_body() -> None:
    """Section 3.2 wants a body; proton leaves out one that is null, so a message without any has that one."""
    book = Playbook().sender()
    before = bytes.fromhex("0053704500537345")  # as proton writes Message(): an empty header, empty properties
    assert published(book.says(0, transfer(0), before)) == [("", "q", NULL)]


def test_credit() -> None:
    """Section 2.6.7: credit is given again when half of it was used."""
    book = Playbook().sender()
    flows: list[Any] = []
    for number in range(CREDIT):
        flows += [each for each in book.does(0, transfer(number), data()) if each.handle == 0]
    assert [(each.delivery_count, each.link_credit) for each in flows] == [(CREDIT // 2, CREDIT), (CREDIT, CREDIT)]


def test_window() -> None:
    """Section 2.5.6: so is the session's window, which parts of messages use too."""
    book = Playbook().sender()
    [flow] = [
        each
        for number in range(INCOMING // 2)
        for each in book.does(0, Transfer(0, 0, b"", 0, more=True) if not number else Transfer(0, more=True), b"x")
    ]
    assert (flow.handle, flow.next_incoming_id, flow.incoming_window) == (None, INCOMING // 2, INCOMING)


@pytest.mark.parametrize(
    ("frame", "payload", "condition"),
    [
        (Transfer(0), b"", "amqp:invalid-field"),  # no delivery begins without its id
        (transfer(0, resume=True), b"", "amqp:not-implemented"),
        (Transfer(0, 0, b"0", 7), data(), "amqp:not-implemented"),
        (transfer(0), data(b"x" * 5000), "amqp:link:message-size-exceeded"),
    ],
)
def test_faults_of_a_link(frame: Transfer, payload: bytes, condition: str) -> None:
    """Section 2.6.5: a link that is used wrongly is detached, and another one goes on."""
    book = Playbook(Amqp10Limits(max_message_size=4000)).sender()
    book.does(0, sending("q", 1))
    [detach] = book.does(0, frame, payload)
    assert (detach.handle, detach.closed, detach.error.condition) == (0, True, condition)
    assert book.does(0, transfer(1), data()) == []  # on its way when we said so
    assert published(book.says(0, transfer(2, 1), data()))
    assert book.does(0, Detach(0, True)) == []


def test_without_credit() -> None:
    """Section 2.6.7: a transfer for which there is no credit ends the link."""
    book = Playbook().begun()
    book.waits = {to_broker.FindNode}
    book.does(0, sending("q"))
    attach, detach = book.does(0, transfer(0), data())
    assert attach.target is None
    assert detach.error.condition == "amqp:link:transfer-limit-exceeded"
    book.serve(book.asked[-1])
    assert book.answers() == []


@pytest.mark.parametrize(
    "attach",
    [
        Attach("a", 0, False, source=Source(), target=Target("q")),  # no initial-delivery-count
        Attach("a", 0, False, source=Source(), target=Target(), initial_delivery_count=0),
        Attach(
            "a",
            0,
            False,
            source=Source(),
            target=Target(dynamic=True, capabilities=(v.Symbol("temporary-topic"),)),
            initial_delivery_count=0,
        ),
        Attach("a", 0, False, source=Source(), target=None, initial_delivery_count=0),
        Attach("a", 0, False, source=Source(), target=Target("q"), unsettled={b"1": None}, initial_delivery_count=0),
    ],
)
def test_links_that_are_not_offered(attach: Attach) -> None:
    """What is not there yet is refused, and said so."""
    book = Playbook().begun()
    refused, detach = book.does(0, attach)
    assert refused.target is None
    assert detach.error.condition in {"amqp:not-implemented", "amqp:invalid-field"}


@pytest.mark.parametrize(
    ("frame", "condition"),
    [
        (sending("q", 0), "amqp:session:handle-in-use"),
        (transfer(0, 7), "amqp:session:unattached-handle"),
        (Flow(0, 1, 0, 1, handle=7), "amqp:session:unattached-handle"),
        (Detach(7), "amqp:session:unattached-handle"),
    ],
)
def test_faults_of_a_session(frame: Any, condition: str) -> None:
    """Section 2.5.8: a session that is used wrongly ends, and the connection goes on."""
    book = Playbook().sender()
    *_, ended = book.does(0, frame)
    assert ended.error.condition == condition
    assert isinstance(book.asked[-1], to_broker.CloseSession)
    assert book.does(0, transfer(0), data()) == []
    assert book.does(0, End()) == []
    [begin] = book.does(0, Begin(None, 0, 1, 1))
    assert begin.remote_channel == 0


def test_detach_waits_for_confirms() -> None:
    """Section 2.6.6: a link that its client ends says goodbye when it has said what became of the messages."""
    book = Playbook().sender()
    book.says(0, transfer(0), data())
    assert book.does(0, Detach(0, True)) == []
    book.confirm(1, 1)
    disposition, detach = book.answers()
    assert disposition.state == Accepted()
    assert detach == Detach(0, True)


def test_detach_of_settled_messages() -> None:
    """Section 2.6.6: so does one whose messages want no outcome."""
    book = Playbook().sender()
    book.says(0, transfer(0, settled=True), data())
    assert book.does(0, Detach(0, True)) == []
    book.confirm(1, 1)
    assert book.answers() == [Detach(0, True)]


def test_many_links() -> None:
    """Section 2.7.2, handle-max: we say how many links there may be, and a handle above that is a framing error."""
    book = Playbook().opened()
    [begin] = book.does(0, Begin(None, 0, 1, 1))
    *_, close = book.does(0, sending("q", begin.handle_max + 1))
    assert close.error.condition == "amqp:connection:framing-error"
    book = Playbook().begun()
    assert len(book.does(0, sending("q", begin.handle_max))) == 2


def test_a_subject_that_is_no_routing_key() -> None:
    """Consumers of 0-x could not be told a key of more than 255 bytes: the message is rejected, the link goes on."""
    book = Playbook().sender("x")
    long = composite.write(Properties(subject="k" * 256)) + data()
    [rejected] = book.does(0, transfer(0), long)
    assert rejected.state.error.condition == "amqp:invalid-field"
    assert published(book.says(0, transfer(1), composite.write(Properties(subject="k" * 255)) + data()))


def test_the_end_of_a_session() -> None:
    """Section 2.5.5: what was asked for is done, then the end is answered."""
    book = Playbook().sender()
    assert book.does(0, End()) == [End()]
    assert isinstance(book.asked[-1], to_broker.CloseSession)


def test_echo() -> None:
    """Section 2.7.4: a client that asks for a flow gets one, of the link or of the session."""
    book = Playbook().sender()
    [flow] = book.does(0, Flow(0, 1, 0, 1, echo=True))
    assert flow.handle is None
    [flow] = book.does(0, Flow(0, 1, 0, 1, handle=0, delivery_count=0, echo=True))
    assert (flow.handle, flow.link_credit) == (0, CREDIT)


def test_the_broker_hears_that_a_link_sends_no_more() -> None:
    """Section 2.6.6: what is known of a link there goes when its client has heard of its messages, and only then."""
    book = Playbook().sender()
    book.says(0, transfer(0), data())
    assert book.says(0, Detach(0, True)) == []
    book.confirm(1, 1)
    assert book.engine.pending_requests() == [to_broker.EndProduce(1, link=1)]
