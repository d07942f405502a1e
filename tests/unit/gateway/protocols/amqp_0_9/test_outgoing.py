"""Deliveries, returns and confirms on their way out."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands, header

from services.common.errors import NotFound, SyntaxFault
from services.gateway.answers import Deliveries, Returned
from services.gateway.outcomes import ACCEPTED, PublishDisposition, PublishOutcome
from services.gateway.protocols.amqp_0_9 import frames, outgoing
from services.gateway.protocols.amqp_0_9.method import encode
from services.gateway.protocols.amqp_0_9.methods import basic
from services.gateway.sessions.publish_ticket import REFUSED
from tests.support.amqp_playbook import Playbook, content
from tests.support.messages import facts, kind, published

_PROPERTIES = b"\x10\x00\x02"  # delivery-mode 2


def _deliveries(bodies: list[bytes], properties: list[bytes] | None = None, first: int = 1) -> Deliveries:
    its_properties = [_PROPERTIES] * len(bodies) if properties is None else properties
    return Deliveries("tag", first, True, [facts("ex")] * len(bodies), its_properties, bodies)


def _messages(sent: list[tuple[int, Any]]) -> list[tuple[Any, Any, bytes]]:
    """(method, properties, body) of each."""
    messages: list[tuple[Any, Any, bytes]] = []
    for _, value in sent:
        if isinstance(value, header.ContentHeader):
            messages[-1] = (messages[-1][0], value, b"")
        elif isinstance(value, commands.base.Frame):
            messages.append((value, None, b""))
        else:
            method, head, body = messages[-1]
            messages[-1] = (method, head, body + value.value)
    assert all(head is None or head.body_size == len(body) for _, head, body in messages)
    return messages


@pytest.mark.parametrize("frame_max", [4096, 131_072])
@pytest.mark.parametrize("size", [0, 1, 4088, 4089, 20_000])
def test_deliveries_alike(size: int, frame_max: int) -> None:
    """A run whose messages differ in nothing but their bodies, of any size."""
    book = Playbook().running(frame_max=frame_max)
    bodies = [bytes([number]) * size for number in range(3)]
    book.engine.deliver(1, _deliveries(bodies, first=5))
    messages = _messages(book.sent())
    assert [body for _, _, body in messages] == bodies
    assert [method.delivery_tag for method, _, _ in messages] == [5, 6, 7]
    method, head, _ = messages[0]
    assert (method.consumer_tag, method.redelivered, method.exchange, method.routing_key) == ("tag", True, "ex", "key")
    assert head.properties.delivery_mode == 2


@pytest.mark.parametrize("sizes", [(1, 9000, 1), (9000, 20_000, 8000)])
def test_deliveries_that_differ(sizes: tuple[int, int, int]) -> None:
    """Bodies of different sizes, properties of their own; large and small."""
    book = Playbook().running(frame_max=4096)
    bodies = [b"", *(bytes(size) for size in sizes)]
    properties = [b"\x00\x00", b"\x08\x00\x07", _PROPERTIES, b"\x00\x00"]
    book.engine.deliver(1, _deliveries(bodies, properties))
    messages = _messages(book.sent())
    assert [body for _, _, body in messages] == bodies
    assert [(head.properties.priority, head.properties.delivery_mode) for _, head, _ in messages] == [
        (None, None),
        (7, None),
        (None, 2),
        (None, None),
    ]


@pytest.mark.parametrize("size", [0, 1, 4088, 4089, 20_000])
def test_one_by_one_as_together(size: int) -> None:
    """A delivery by itself is, byte for byte, what it is among others."""
    bodies, properties = [bytes(size), bytes(1), bytes(size)], [_PROPERTIES, b"\x00\x00", b"\x08\x00\x07"]
    together = b"".join(outgoing.deliveries(1, _deliveries(bodies, properties), 4096))
    alone = [
        outgoing.deliveries(1, _deliveries([body], [its], number), 4096)
        for number, (body, its) in enumerate(zip(bodies, properties, strict=True), 1)
    ]
    assert b"".join(map(b"".join, alone)) == together


@pytest.mark.parametrize("others", [[], ["k"], ["k" * 255, "k"]])
def test_keys_that_are_too_long(others: list[str]) -> None:
    """What no short string can say is the same fault alone and among others (4.2.5.3)."""
    its = [facts("ex", key) for key in (*others, "k" * 256)]
    deliveries = Deliveries("tag", 1, True, its, [_PROPERTIES] * len(its), [b"x"] * len(its))
    with pytest.raises(SyntaxFault):
        Playbook().running().engine.deliver(1, deliveries)


def test_large_bodies_are_not_copied() -> None:
    """Alike or not, they are written from where they are; small ones are joined."""
    book = Playbook().running(frame_max=131_072)
    book.raw()
    for bodies in ([bytes(8192)] * 3, [bytes(8192), bytes(8193)]):
        book.engine.deliver(1, _deliveries(bodies))
        chunks = book.engine.data_to_send()
        assert [chunk for chunk in chunks if len(chunk) > 8000] == bodies
        assert all(any(chunk is body for chunk in chunks) for body in bodies)
    book.engine.deliver(1, _deliveries([bytes(100)] * 3))
    assert len(book.engine.data_to_send()) == 1


def test_facts_that_are_equal_and_not_one_object() -> None:
    """They need not be: what repeats is remembered for a while only."""
    book = Playbook().running()
    equal = [facts("ex"), facts("ex"), facts("ex", "other"), facts("ex")]
    for some in (equal, equal[:2] + equal[:1]):
        book.engine.deliver(
            1, Deliveries("tag", 1, False, some, [_PROPERTIES] * len(some), [b"a", b"bb", b"c", b"d"][: len(some)])
        )
        keys = [method.routing_key for method, _, _ in _messages(book.sent())]
        assert keys == [each.routing_key for each in some]


def test_no_frame_is_larger_than_agreed() -> None:
    """A body is cut at what the client's tune-ok said (section 4.2.3)."""
    book = Playbook().running(frame_max=4096)
    book.engine.deliver(1, _deliveries([b"x" * 10_000]))
    sizes = [
        len(value.value)
        for _, value in book.sent()
        if not isinstance(value, commands.base.Frame | header.ContentHeader)
    ]
    assert sizes == [4088, 4088, 10_000 - 2 * 4088]


def test_nothing_is_delivered_to_a_channel_that_is_gone() -> None:
    """What comes too late is dropped."""
    book = Playbook().running()
    book.does(1, commands.Channel.Close(200, "", 0, 0))
    book.engine.deliver(1, _deliveries([b"x"]))
    book.engine.confirm(1, [PublishDisposition(0, 1, 1, ACCEPTED)])
    book.engine.cancelled(1, "tag")
    book.engine.returned(1, Returned(published([b""], kind(mandatory=True)), [0]))
    assert book.raw() == b""


def test_cumulative_confirms_are_one_ack() -> None:
    """The last number, with multiple; a refusal is for itself."""
    book = Playbook().running()
    book.does(1, commands.Confirm.Select())
    book.engine.confirm(1, [PublishDisposition(0, 1, 600, ACCEPTED), PublishDisposition(0, 601, 1000, ACCEPTED)])
    book.engine.confirm(1, [PublishDisposition(0, 1001, 1001, REFUSED)])
    [(_, ack), (_, nack)] = book.sent()
    assert (ack.delivery_tag, ack.multiple) == (1000, True)
    assert isinstance(nack, commands.Basic.Nack)
    assert (nack.delivery_tag, nack.multiple) == (1001, False)


@pytest.mark.parametrize(("outcome", "kind"), [(ACCEPTED, commands.Basic.Ack), (REFUSED, commands.Basic.Nack)])
def test_single_confirms(outcome: PublishOutcome, kind: type) -> None:
    """One frame each when earlier ones are still open."""
    book = Playbook().running()
    book.does(1, commands.Confirm.Select())
    book.engine.confirm(1, [PublishDisposition(0, 3, 5, outcome)])
    sent = [value for _, value in book.sent()]
    assert [value.delivery_tag for value in sent] == [3, 4, 5]
    assert all(isinstance(value, kind) and not value.multiple for value in sent)


@pytest.mark.parametrize(("no_consumers", "code", "text"), [(False, 312, "NO_ROUTE"), (True, 313, "NO_CONSUMERS")])
def test_returned_messages(no_consumers: bool, code: int, text: str) -> None:
    """basic.return with the reason and the whole content, for those of the run that came back."""
    book = Playbook().running()
    publish = published([b"a", b"b", b"c"], kind("ex", mandatory=True), properties=[_PROPERTIES])
    book.engine.returned(1, Returned(publish, [1, 2], no_consumers))
    messages = _messages(book.sent())
    assert [body for _, _, body in messages] == [b"b", b"c"]
    method = messages[0][0]
    assert (method.reply_code, method.reply_text, method.exchange, method.routing_key) == (code, text, "ex", "key")


def test_cancelled_consumers_are_told_to_clients_that_understand() -> None:
    """basic.cancel from the server is RabbitMQ's, and announced by a capability."""
    book = Playbook().running()
    book.engine.cancelled(1, "tag")
    [(_, cancel)] = book.sent()
    assert (cancel.consumer_tag, cancel.nowait) == ("tag", True)
    plain = Playbook().running(capabilities={})
    plain.engine.cancelled(1, "tag")
    assert plain.raw() == b""


def test_blocked_is_told_to_clients_that_understand() -> None:
    """connection.blocked with its reason, and unblocked."""
    book = Playbook().running()
    book.engine.blocked("low on memory")
    book.engine.blocked(None)
    [(_, blocked), (_, unblocked)] = book.sent()
    assert blocked.reason == "low on memory"
    assert isinstance(unblocked, commands.Connection.Unblocked)
    plain = Playbook().running(capabilities={})
    plain.engine.blocked("low on memory")
    assert plain.raw() == b""


def test_a_channel_that_its_client_is_closing_hears_only_of_what_it_sent() -> None:
    """Between close and close-ok confirms and returns go out; nothing new is delivered."""
    book = Playbook().running()
    book.does(1, commands.Confirm.Select())
    book.client(1, commands.Channel.Close(200, "", 0, 0))
    book.engine.deliver(1, _deliveries([b"x"]))
    book.engine.cancelled(1, "tag")
    assert book.raw() == b""
    book.engine.confirm(1, [PublishDisposition(0, 1, 1, ACCEPTED)])
    [(_, ack)] = book.sent()
    assert ack.name == "Basic.Ack"


def test_a_publish_that_fails_after_its_client_closed_the_channel_is_still_told() -> None:
    """The closes cross: the client's is answered, ours names the fault, and the number can be used again."""
    book = Playbook().running()
    [publish] = book.engine.receive(content(1, b"x", exchange="nowhere"))
    close = book.asks(1, commands.Channel.Close(200, "", 0, 0))
    book.engine.fail(publish, NotFound("no exchange 'nowhere'"))
    [(_, ours)] = book.sent()
    assert (ours.name, ours.reply_code) == ("Channel.Close", 404)
    book.engine.succeed(close)
    [(_, answer)] = book.sent()
    assert answer.name == "Channel.CloseOk"
    assert book.client(1, commands.Channel.CloseOk()) == []
    assert book.does(1, commands.Channel.Open()).name == "Channel.OpenOk"


@pytest.mark.parametrize("key", ["", "a.b", "ö" * 127])
@pytest.mark.parametrize("redelivered", [True, False])
def test_a_delivery_is_written_as_any_method_is(key: str, redelivered: bool) -> None:
    """Around its tag, with any key, to the byte."""
    whole = frames.frame(frames.METHOD, 3, encode(basic.Deliver("täg", 0, redelivered, "ex", key)))
    for _ in range(2):
        before, after = outgoing._around_tag(3, "täg", redelivered, "ex", key)
        assert before + bytes(8) + after == whole
