"""The message format of the 0-9-1 family."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands, header

from services.common.errors import PreconditionFailed, SyntaxFault
from services.common.message import Attributes
from services.common.message.amqp_0_9 import FORMAT


def _properties(**values: Any) -> bytes:
    return header.ContentHeader(properties=commands.Basic.Properties(**values)).marshal()[12:]


_EVERYTHING = {
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "headers": {"a": "1"},
    "delivery_mode": 2,
    "priority": 7,
    "correlation_id": "c",
    "reply_to": "r",
    "expiration": "60000",
    "message_id": "m",
    "message_type": "t",
    "user_id": "u",
    "app_id": "a",
}


@pytest.mark.parametrize(
    ("values", "attributes"),
    [
        ({}, Attributes()),
        ({"delivery_mode": 1}, Attributes()),
        ({"delivery_mode": 2}, Attributes(persistent=True)),
        ({"priority": 9}, Attributes(priority=9)),
        ({"expiration": "0"}, Attributes(ttl_ms=0)),
        ({"expiration": "1500"}, Attributes(ttl_ms=1500)),
        ({"expiration": "+315360000000"}, Attributes(ttl_ms=315_360_000_000)),
        ({"user_id": "ü"}, Attributes(user_id="ü")),
        ({"reply_to": "amq.rabbitmq.reply-to"}, Attributes(direct_reply=True)),
        ({"reply_to": "other"}, Attributes()),
        (_EVERYTHING, Attributes(True, 7, 60000, None, "u", False)),
    ],
)
def test_attributes_are_read(values: dict[str, Any], attributes: Attributes) -> None:
    """The facts that a broker acts on are found, among any other properties."""
    assert FORMAT.attributes(_properties(**values)) == attributes


def test_equal_attributes_are_one_object() -> None:
    """Different properties of equal meaning give the same object, so that runs are found by identity."""
    one = FORMAT.attributes(_properties(delivery_mode=2, message_id="1"))
    assert FORMAT.attributes(_properties(delivery_mode=2, message_id="2", headers={"x": 1})) is one


def test_memory_of_attributes_is_bounded() -> None:
    """Ten thousand different properties are read right, and do not pile up."""
    for number in range(10_000):
        assert FORMAT.attributes(_properties(expiration=str(number), message_id=str(number))).ttl_ms == number
    assert max(len(FORMAT._memo), len(FORMAT._known), len(FORMAT._interned)) <= 4096


@pytest.mark.parametrize("expiration", ["", "abc", "-1", "1.5", " 1", "1 ", "315360000001", "9" * 30])
def test_invalid_expirations_fail_the_precondition(expiration: str) -> None:
    """As RabbitMQ: expiration is a number of milliseconds, ten years at most, in digits and nothing else."""
    raw = expiration.encode()
    with pytest.raises(PreconditionFailed, match="invalid expiration"):
        FORMAT.attributes(b"\x01\x00" + bytes((len(raw),)) + raw)


@pytest.mark.parametrize(
    "properties",
    [
        b"",
        b"\x80",
        b"\x80\x00",
        b"\x80\x00\x05ab",
        b"\x00\x01",
        b"\x00\x02",
        b"\x00\x00x",
        b"\x20\x00\x00\x00",
        b"\x00\x40\x00",
    ],
)
def test_bad_properties_are_syntax_faults(properties: bytes) -> None:
    """Truncated lists, unknown flags and bytes too many are refused."""
    with pytest.raises(SyntaxFault):
        FORMAT.attributes(properties)


@pytest.mark.parametrize("flags", [0x0200, 0x0010])
def test_text_that_is_not_utf_8(flags: int) -> None:
    """A reply-to is the application's affair; a user-id is another one than the user's, and refused as such."""
    properties = flags.to_bytes(2, "big") + b"\x02\xff\xfe"
    user = "\ufffd\ufffd" if flags == 0x0010 else None
    assert FORMAT.attributes(properties) == Attributes(user_id=user)


def test_properties_as_they_came() -> None:
    """Text is for who reads it, octets are for who passes it on; and only texts are these."""
    properties = b"\x04\x00\x02\xff\xfe"
    assert FORMAT.text(properties, "correlation-id") == "\ufffd\ufffd"
    assert FORMAT.octets(properties, "correlation-id") == b"\xff\xfe"
    everything = _properties(**_EVERYTHING)
    names = ("message-id", "user-id", "cluster-id", "headers", "priority", "unknown")
    assert [FORMAT.octets(everything, name) for name in names] == [b"m", b"u", None, None, None, None]


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(properties: bytes) -> None:
    """No bytes raise anything but the two errors that are documented."""
    try:
        FORMAT.attributes(properties)
    except (SyntaxFault, PreconditionFailed):
        return
    FORMAT.text(properties, "delivery-mode")


def test_headers_are_read() -> None:
    """The headers table as Python values; none is an empty one."""
    assert FORMAT.headers(_properties(**_EVERYTHING)) == {"a": "1"}
    assert FORMAT.headers(_properties()) == {}


def test_headers_are_replaced() -> None:
    """Only the headers change."""
    changed = FORMAT.with_headers(_properties(**_EVERYTHING), {"b": "x"})
    assert changed == _properties(**{**_EVERYTHING, "headers": {"b": "x"}})


def test_headers_are_added_and_removed() -> None:
    """They may appear where none were, and vanish."""
    assert FORMAT.headers(FORMAT.with_headers(b"\x00\x00", {"b": "x"})) == {"b": "x"}
    assert FORMAT.with_headers(_properties(headers={"a": 1}), {}) == b"\x00\x00"


def test_expiration_is_dropped_on_demand() -> None:
    """Dead-lettering removes the expiration, and keeps everything else."""
    changed = FORMAT.with_headers(_properties(**_EVERYTHING), {"a": "1"}, drop_expiration=True)
    assert changed == _properties(**{name: value for name, value in _EVERYTHING.items() if name != "expiration"})


def test_reply_to_is_replaced() -> None:
    """Only reply-to changes; it may be new."""
    assert FORMAT.with_reply_to(_properties(**_EVERYTHING), "new") == _properties(**{**_EVERYTHING, "reply_to": "new"})
    assert FORMAT.text(FORMAT.with_reply_to(b"\x00\x00", "new"), "reply-to") == "new"
    with pytest.raises(SyntaxFault):
        FORMAT.with_reply_to(b"\x00\x00", "x" * 256)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("content-type", "text/plain"),
        ("correlation-id", "c"),
        ("reply-to", "r"),
        ("message-id", "m"),
        ("type", "t"),
        ("app-id", "a"),
        ("priority", "7"),
        ("delivery-mode", "2"),
        ("timestamp", None),
        ("headers", None),
        ("no-such-property", None),
    ],
)
def test_properties_as_text(name: str, text: str | None) -> None:
    """Each is found by its 0-9-1 name."""
    assert FORMAT.text(_properties(**_EVERYTHING), name) == text


def test_timestamp_as_text() -> None:
    """In seconds."""
    assert FORMAT.text(b"\x00\x40" + (77).to_bytes(8, "big"), "timestamp") == "77"
