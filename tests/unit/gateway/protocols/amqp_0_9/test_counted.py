"""Clients of 0-9-1 are told of attempts by headers, where a queue limits them."""

from __future__ import annotations

import struct

import pytest

from services.common.message.amqp_0_9 import FORMAT, compose
from services.common.message.facts import Facts
from services.gateway.answers import Deliveries
from services.gateway.protocols.amqp_0_9.counted import counted
from services.gateway.protocols.amqp_0_9.frames import HEAD, MIN_FRAME_MAX, OVERHEAD
from services.gateway.protocols.amqp_0_9.outgoing import deliveries

FACTS = Facts("/", "", "q", "amqp-0-9")

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


def test_whatever_else_they_say_stays_as_it_is_written() -> None:
    """A byte stays one, though all integers that are encoded anew take four: it has to fit its reader's frame."""
    table = b"\x01aA" + _long(b"b\x01" * 1014)
    properties = _headers(table)
    frames = deliveries(1, Deliveries("c", 1, 1, [FACTS], [properties], [b"x"], acquired=1), MIN_FRAME_MAX)
    sizes = _sizes(b"".join(frames))
    assert len(properties) < 2048
    assert max(sizes) <= MIN_FRAME_MAX
    [counts] = counted([properties], 1, 1)
    assert counts[6:].startswith(table)
    assert len(counts) - len(properties) == 2 * (1 + 16 + 1 + 4)


def test_equal_ones_are_made_once() -> None:
    """Thousands that come back together say the same, as a rule."""
    first, second, _ = counted([PROPERTIES, bytes(bytearray(PROPERTIES)), b"\0\0"], 1, 2)
    assert first is second


def test_what_is_nested_deeply_is_not_looked_at() -> None:
    """Nothing is decoded, so that nothing can be too deep."""
    [properties] = counted([_nested(70)], 0, 2)
    assert properties == _headers(_nested(70)[6:] + b"\x10x-acquired-countI\0\0\0\2")


def _nested(depth: int) -> bytes:
    value = b"V"
    for _ in range(depth):
        value = b"F" + _long(b"\x01a" + value)
    return _headers(b"\x01a" + value)


def _headers(fields: bytes) -> bytes:
    return struct.pack(">H", 0x2000) + _long(fields)


def _long(octets: bytes) -> bytes:
    return struct.pack(">I", len(octets)) + octets


def _sizes(frames: bytes) -> list[int]:
    found = []
    while frames:
        found.append(HEAD.unpack_from(frames)[2] + OVERHEAD)
        frames = frames[found[-1] :]
    return found


@pytest.mark.parametrize(
    "odd",
    [
        b"\x20\x00\x00\x00\x00\x05\x01a",
        b"\x20\x00\x00\x00\x00\x13\x10x-delivery-count?",
        compose({}, {"a": "x" * 2048}, persistent=False, priority=0),
    ],
)
def test_what_cannot_be_read_goes_on_as_it_came(odd: bytes) -> None:
    """One message's headers cut nobody off; those that are long may have no room for more in a client's frame."""
    assert counted([odd, PROPERTIES], 1, 2)[0] is odd
    assert FORMAT.headers(counted([odd, PROPERTIES], 1, 2)[1])["x-acquired-count"] == 2
