"""The message format of AMQP 1.0: what a broker reads in a message, and what it changes (part 3, section 3.2)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.errors import SyntaxFault
from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.format import FORMAT
from services.common.message.amqp_1_0.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    MESSAGE_ANNOTATIONS,
    NULL,
    SEQUENCE,
    VALUE,
    Header,
    Properties,
    sections,
    split,
)

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNTRACED = PARENT[:-1] + "0"


def section(code: int, value: Any) -> bytes:
    return encode(v.Described(v.ULong(code), value))


def annotations(**values: Any) -> bytes:
    return section(MESSAGE_ANNOTATIONS, {v.Symbol(name.replace("_", "-")): value for name, value in values.items()})


def application(**values: Any) -> bytes:
    return section(APPLICATION_PROPERTIES, {name.replace("_", "-"): value for name, value in values.items()})


BODY = section(DATA, b"hello")


# -------------------------------------------------------------- sections


def test_a_message_is_split() -> None:
    """What is before the body is properties; the footer goes with it; delivery annotations go no further (3.2.2)."""
    before = composite.write(Header(durable=True)) + annotations(a=1) + composite.write(Properties(subject="s"))
    footer = section(FOOTER, {})
    told = section(DELIVERY_ANNOTATIONS, {v.Symbol("x"): 1})
    header, rest = before[: before.index(b"\x00\x53\x72")], before[before.index(b"\x00\x53\x72") :]
    assert split(header + told + rest + BODY + BODY + footer) == (before, BODY + BODY + footer)


@pytest.mark.parametrize(
    "descriptor", [b"\x53\x75", b"\x80" + (0x75).to_bytes(8, "big"), encode(v.Symbol("amqp:data:binary"))]
)
def test_descriptors(descriptor: bytes) -> None:
    """A section's descriptor may be a number in any encoding, or its name (1.2)."""
    raw = b"\x00" + descriptor + encode(b"x")
    assert [each.code for each in sections(raw)] == [DATA]


@pytest.mark.parametrize(
    "message",
    [
        b"\x40",
        b"\x00",
        b"\x00\x53",
        b"\x00\x53\x75",
        section(0x79, b""),
        section(0x6F, b""),
        BODY + composite.write(Header()),  # the order is another one
        BODY + section(VALUE, 1),  # bodies of two kinds
        section(VALUE, 1) * 2,
        section(FOOTER, {}) + BODY,
        composite.write(Header()) * 2 + BODY,
        BODY[:-1],
        BODY + b"\x00",
    ],
)
def test_no_messages(message: bytes) -> None:
    """What is no message is refused (3.2)."""
    with pytest.raises(SyntaxFault):
        split(message)


@pytest.mark.parametrize("footer", [b"", section(FOOTER, {})])
@pytest.mark.parametrize("before", [b"", composite.write(Header(durable=True)), annotations(a=1)])
def test_a_message_without_a_body(before: bytes, footer: bytes) -> None:
    """Its body is null: proton leaves it out, though a message has one (3.2)."""
    assert split(before + footer) == (before, NULL + footer)
    assert FORMAT.content(NULL + footer) == b""


def test_bodies_of_several_sections() -> None:
    """A body is one or more data sections, or one or more sequences, or one value (3.2)."""
    for body in (BODY * 3, section(SEQUENCE, [1]) * 2, section(VALUE, None)):
        assert split(body) == (b"", body)


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes(raw: bytes) -> None:
    """Any properties of a client are read, or are its fault."""
    for ask in (FORMAT.attributes, FORMAT.headers, FORMAT.identities, split):
        try:
            ask(raw)
        except SyntaxFault:
            continue
    FORMAT.identifying(raw)
    FORMAT.trace_context(raw)


# -------------------------------------------------------------- what a broker acts on


@pytest.mark.parametrize(
    ("header", "facts"),
    [
        (b"", (False, 4, None)),
        (composite.write(Header()), (False, 4, None)),
        (composite.write(Header(durable=True, priority=9, ttl=1000)), (True, 9, 1000)),
        (composite.write(Header(durable=False, priority=0, ttl=0)), (False, 0, 0)),
    ],
)
def test_header(header: bytes, facts: tuple[bool, int, int | None]) -> None:
    """Durable, priority (4 where it is not said) and time to live are the header's (3.2.1)."""
    assert FORMAT.attributes(header)[:3] == facts


def test_equal_attributes_are_one() -> None:
    """Messages that differ in their ids have the same attributes: the same object."""
    header = composite.write(Header(priority=5))
    one, two = (FORMAT.attributes(header + composite.write(Properties(message_id=str(at)))) for at in range(2))
    assert one is two


def test_user() -> None:
    """The user-id is read, with any fields before it; one that is no user's name is no fault."""
    for name in (b"guest", b"\xff"):
        raw = composite.write(Properties(message_id=v.ULong(7), user_id=name, subject="x"))
        assert FORMAT.attributes(raw).user_id == name.decode(errors="replace")
    assert FORMAT.attributes(composite.write(Properties(message_id="x"))).user_id is None


@pytest.mark.parametrize(
    "raw",
    [
        section(0x70, [True, "high"]),
        section(0x70, {}),
        section(0x70, [True] * 6),
        section(0x73, [None, "no binary"]),
        section(0x73, 1),
    ],
)
def test_wrong_types(raw: bytes) -> None:
    """A field of another type than its own is a fault."""
    with pytest.raises(SyntaxFault):
        FORMAT.attributes(raw)


# -------------------------------------------------------------- what it can be found by


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("order-1", "order-1"),
        (v.ULong(7), "7"),
        (UUID(int=1), str(UUID(int=1))),
        (b"abc", "abc"),
    ],
)
def test_ids(given: Any, told: str) -> None:
    """Ids of all four types are found as text (3.2.11 to 3.2.14)."""
    raw = composite.write(Properties(message_id=given, correlation_id=given))
    assert FORMAT.identities(FORMAT.identifying(raw)) == [("message_id", told), ("correlation_id", told)]
    assert FORMAT.text(raw, "message-id") == told


def test_nothing_to_find() -> None:
    """A message without ids and context needs nothing to be kept."""
    assert FORMAT.identifying(composite.write(Properties(subject="s")) + application(a="b")) == b""


def test_an_id_that_nobody_can_ask_for_is_not_kept() -> None:
    """It may be as large as a message, and batches of the ledger, in which it goes with those of others, may not."""
    long = Properties(message_id="m" * 1025)
    assert FORMAT.identifying(composite.write(long)) == b""
    kept = FORMAT.identifying(composite.write(replace(long, correlation_id="c" * 1024)))
    assert FORMAT.identities(kept) == [("correlation_id", "c" * 1024)]


def test_long_properties_are_kept_short() -> None:
    """Of long properties, what is kept is what the message is found by."""
    raw = annotations(traceparent=PARENT) + composite.write(Properties(message_id="m", subject="s" * 1000))
    kept = FORMAT.identifying(raw)
    assert len(kept) < 150
    assert FORMAT.identities(kept) == FORMAT.identities(raw) != []


@pytest.mark.parametrize("where", [annotations, application])
def test_trace_context(where: Any) -> None:
    """W3C Trace Context is found in annotations and in application properties."""
    context = FORMAT.trace_context(where(traceparent=PARENT, tracestate="a=b"))
    assert context is not None
    assert (context.traceparent(), context.state) == (PARENT, "a=b")
    assert FORMAT.attributes(where(traceparent=PARENT)).sampled
    assert not FORMAT.attributes(where(traceparent=UNTRACED)).sampled
    assert FORMAT.trace_context(where(traceparent=1)) is None


# -------------------------------------------------------------- headers


def test_headers_are_plain() -> None:
    """Application properties are headers, as values that any exchange can compare."""
    moment = datetime(2026, 11, 23, tzinfo=UTC)
    raw = application(
        n=v.UInt(3), s=v.Symbol("x"), t=v.Timestamp(int(moment.timestamp() * 1000)), u=UUID(int=1), none=None
    )
    found = FORMAT.headers(raw)
    assert found == {"n": 3, "s": "x", "t": moment, "u": str(UUID(int=1)), "none": None}
    assert [type(value) for value in found.values()][:2] == [int, str]


def test_headers_that_a_broker_adds() -> None:
    """What is added is there again when it is read, lists as annotations; the rest keeps its types (3.2.3, 3.2.5)."""
    raw = annotations(x_opt_old=v.UByte(1), other=v.UShort(2)) + application(n=v.UInt(3), gone=1)
    death = {"count": 1, "time": datetime(2026, 11, 23, tzinfo=UTC), "routing-keys": ["k"]}
    headers = {name: value for name, value in FORMAT.headers(raw).items() if name != "gone"}
    told = FORMAT.with_headers(raw, headers | {"x-death": [death], "x-first-death-queue": "q", "new": 5})
    assert FORMAT.headers(told) == headers | {"x-death": [death], "x-first-death-queue": "q", "new": 5}
    assert application(n=v.UInt(3), new=5) in told
    assert encode(v.Symbol("x-opt-old")) + encode(v.UByte(1)) in told
    assert encode(v.Symbol("other")) + encode(v.UShort(2)) in told
    assert [each.code for each in sections(told)] == [MESSAGE_ANNOTATIONS, APPLICATION_PROPERTIES]


def test_expiration_is_dropped() -> None:
    """A dead letter does not expire again; the rest of its header stays."""
    raw = composite.write(Header(durable=True, priority=3, ttl=10))
    assert FORMAT.text(raw, "expiration") == "10"
    told = FORMAT.with_headers(raw, {}, drop_expiration=True)
    assert FORMAT.attributes(told)[:3] == (True, 3, None)


def test_headers_that_cannot_be_read() -> None:
    """Application properties that are none do not keep a message from being dead-lettered."""
    raw = section(APPLICATION_PROPERTIES, 5)
    with pytest.raises(SyntaxFault):
        FORMAT.headers(raw)
    assert FORMAT.headers(FORMAT.with_headers(raw, {"a": "b"})) == {"a": "b"}


def test_another_reply_to() -> None:
    """The reply-to address is replaced, all else stays as it came."""
    raw = composite.write(Properties(message_id=v.ULong(1), subject="s", reply_to="old"))
    assert FORMAT.with_reply_to(raw, "new") == composite.write(Properties(v.ULong(1), subject="s", reply_to="new"))


def test_texts() -> None:
    """Properties by the names that 0-9-1 has for them; what has no name here is None."""
    raw = composite.write(Properties(subject="kind", content_type="text/plain", creation_time=5, user_id=b"me"))
    names = ("type", "content-type", "timestamp", "user-id", "reply-to", "app-id")
    assert [FORMAT.text(raw, name) for name in names] == ["kind", "text/plain", "5", "me", None, None]
