"""Clients of 0-9-1 are told of attempts by headers, where a queue limits them."""

from __future__ import annotations

import struct

import pytest

from services.common.message.amqp_0_9 import FORMAT, compose
from services.gateway.protocols.amqp_0_9.counted import counted

PROPERTIES = compose({"message-id": "m"}, {"a": 1, "x-delivery-count": 9}, persistent=True, priority=0)


@pytest.mark.parametrize(
    ("attempts", "acquired", "said"),
    [
        (0, 0, {"a": 1, "x-delivery-count": 9}),
        (0, 2, {"a": 1, "x-acquired-count": 2}),
        (1, 2, {"a": 1, "x-acquired-count": 2, "x-delivery-count": 1}),
    ],
)
def test_what_they_say(attempts: int, acquired: int, said: dict[str, int]) -> None:
    """In place of what another queue has said; whatever else a message has is as it was."""
    [properties] = counted([PROPERTIES], attempts, acquired)
    assert dict(FORMAT.headers(properties)) == said
    assert FORMAT.text(properties, "message-id") == "m"


def _nested(depth: int) -> bytes:
    value = b"V"
    for _ in range(depth):
        value = b"F" + _long(b"\x01a" + value)
    return struct.pack(">H", 0x2000) + _long(b"\x01a" + value)


def _long(octets: bytes) -> bytes:
    return struct.pack(">I", len(octets)) + octets


@pytest.mark.parametrize(
    "odd",
    [_nested(70), b"\x20\x00\x00\x00\x00\x05\x01a?", compose({}, {"a": "x" * 2048}, persistent=False, priority=0)],
)
def test_what_cannot_be_read_goes_on_as_it_came(odd: bytes) -> None:
    """One message's headers cut nobody off; those that are long may have no room for more in a client's frame."""
    assert counted([odd, PROPERTIES], 1, 2)[0] is odd
    assert FORMAT.headers(counted([odd, PROPERTIES], 1, 2)[1])["x-acquired-count"] == 2
