"""Messages of other protocols in the form of class basic."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.message import amqp_0_9
from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    MESSAGE_ANNOTATIONS,
    SEQUENCE,
    VALUE,
    Header,
    Properties,
)
from services.common.message.facts import Facts
from services.gateway.protocols.amqp_0_9.foreign import native

OURS = Facts("/", "", "q", "amqp-0-9")
THEIRS = Facts("/", "", "q", "amqp-1-0", persistent=True, priority=3, ttl_ms=500)


def section(code: int, value: Any) -> bytes:
    return encode(v.Described(v.ULong(code), value))


def test_properties() -> None:
    """What both have a name for, and what the broker knows."""
    its = Properties("m", b"guest", None, "kind", "replies", v.ULong(7), "text/plain", "x" * 300)
    raw = (
        composite.write(Header(durable=True)) + composite.write(its) + section(APPLICATION_PROPERTIES, {"a": v.UInt(1)})
    )
    [properties], [body] = native([THEIRS], [raw], [section(DATA, b"body")])
    texts = ("message-id", "user-id", "type", "reply-to", "correlation-id", "content-type", "expiration", "priority")
    told = [amqp_0_9.FORMAT.text(properties, name) for name in texts]
    assert told == ["m", "guest", "kind", "replies", "7", "text/plain", "500", "3"]
    assert amqp_0_9.FORMAT.text(properties, "content-encoding") is None  # too long for a short string
    assert amqp_0_9.FORMAT.headers(properties) == {"a": 1}
    assert amqp_0_9.FORMAT.attributes(properties).persistent
    assert body == b"body"


def test_times() -> None:
    """A creation time (part 3, 3.2.4) is in milliseconds, a timestamp (4.2.5.4) in whole seconds since 1970."""
    told = [
        amqp_0_9.FORMAT.text(
            native([THEIRS], [composite.write(Properties(creation_time=ms))], [b""])[0][0], "timestamp"
        )
        for ms in (1_500_000_000_999, 0, -1, None)
    ]
    assert told == ["1500000000", "0", None, None]


def test_large_numbers() -> None:
    """An integer that is too large for a field is its text: as a field of times, clients could not read the message."""
    said = {"most": v.ULong(2**64 - 1), "over": v.ULong(2**63), "in": v.ULong(2**63 - 1), "least": v.Long(-(2**63))}
    ours = {v.Symbol("x-hopline-x"): [v.ULong(2**63), {"in": v.ULong(2**63)}]}
    raw = section(MESSAGE_ANNOTATIONS, ours) + section(APPLICATION_PROPERTIES, said)
    [properties], _ = native([THEIRS], [raw], [b""])
    told = dict(amqp_0_9.FORMAT.headers(properties))
    nested = told.pop("x-hopline-x", None)
    assert told == {"most": str(2**64 - 1), "over": str(2**63), "in": 2**63 - 1, "least": -(2**63)}
    assert nested in (None, [str(2**63), {"in": str(2**63)}])


def test_binary_ids() -> None:
    """They are bytes in both protocols (part 3, 3.2.13), and are the same again where they came from."""
    raw = composite.write(Properties(b"m\xff", b"guest", correlation_id=b"\xff\0"))
    [properties], _ = native([THEIRS], [raw], [section(DATA, b"")])
    names = ("message-id", "correlation-id", "user-id", "type")
    told = [amqp_0_9.FORMAT.octets(properties, name) for name in names]
    assert told == [b"m\xff", b"\xff\0", b"guest", None]


@pytest.mark.parametrize(
    ("sections", "body"),
    [
        (section(DATA, b"a") + section(DATA, b"b"), b"ab"),
        (section(VALUE, "text"), b"text"),
        (section(VALUE, b"bytes"), b"bytes"),
        (section(VALUE, None), b""),
        (section(VALUE, 5), section(VALUE, 5)),
        (section(SEQUENCE, [1]), section(SEQUENCE, [1])),
        (b"garbage", b"garbage"),
    ],
)
def test_bodies(sections: bytes, body: bytes) -> None:
    """Data and text are taken out of their sections; what has no plain form goes as it came."""
    assert native([THEIRS], [b""], [sections])[1] == [body]


def test_what_cannot_be_read() -> None:
    """A message goes to its consumer, with any content of its publisher."""
    [properties], _ = native([THEIRS], [section(APPLICATION_PROPERTIES, 5)], [section(DATA, b"")])
    assert amqp_0_9.FORMAT.headers(properties) == {}


def test_ours_stay_as_they_are() -> None:
    """In the same batch."""
    properties, bodies = native([OURS, THEIRS], [b"\x00\x00", b""], [b"1", section(DATA, b"2")])
    assert (properties[0], bodies) == (b"\x00\x00", [b"1", b"2"])


@pytest.mark.parametrize("name", ["n" * 256, "é" * 128])
def test_headers_that_no_table_can_have(name: str) -> None:
    """A field's name has 255 bytes at most: such a header is left out, and its consumer goes on."""
    raw = section(APPLICATION_PROPERTIES, {name: 1, "a": 2})
    [properties], _ = native([THEIRS], [raw], [section(DATA, b"")])
    assert amqp_0_9.FORMAT.headers(properties) == {"a": 2}
