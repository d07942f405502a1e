"""What the benchmark sends is what it says, and what it receives is counted right."""

from __future__ import annotations

import struct
from itertools import islice, pairwise

import pytest

from benchmarks.chunks import chunks
from benchmarks.delivery import learn
from benchmarks.load import Destination
from benchmarks.streams import ALTERNATING, STREAMS
from benchmarks.wire import BODY, CHANNEL, HEADER, METHOD, Address, consumer_tag, frame, frame_length, method, short
from services.common.message.amqp_0_9 import FORMAT

_EVERY = {name: load for name, (_, load) in STREAMS.items()} | {"alternating": ALTERNATING}
_DISTINCT = {
    "headers-exchange": 100,
    "persistence": 2,
    "priorities": 10,
    "expirations": 50,
    "keys": 100,
    "keys-100": 100,
    "topics": 100,
    "selectors": 100,
    "selectors-any": 100,
    "groups": 100,
    "sorted": 100,
    "small": 1,
    "64k": 1,
    "1m": 1,
}
"""Kinds of message in a stream; in those that are not here no two messages are alike."""


def _frames(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        length = frame_length(data, at)
        found.append(data[at : at + length])
        at += length
    return found


def _kinds(name: str, count: int) -> tuple[set[tuple[bytes, bytes]], int]:
    """Methods and properties that differ among so many messages at least, and how many there were."""
    destination = Destination(Address("localhost", 5672), _EVERY[name])
    kinds, total = set(), 0
    for chunk in chunks(destination, 0):
        messages = [each for each in _frames(bytes(chunk)) if each[0] != BODY]
        kinds |= {(publish, header[19:-1]) for publish, header in zip(messages[::2], messages[1::2], strict=True)}
        total += len(messages) // 2
        if total >= count:
            return kinds, total
    raise AssertionError("chunks have an end")


@pytest.mark.parametrize("name", _EVERY)
def test_messages_differ_as_the_title_says(name: str) -> None:
    """So many kinds of message, or each another; the properties are well-formed."""
    kinds, total = _kinds(name, 200)
    assert len(kinds) == _DISTINCT.get(name, total)
    for _, properties in kinds:
        FORMAT.attributes(properties)


@pytest.mark.parametrize("name", _EVERY)
def test_chunks_keep_within_their_sizes(name: str) -> None:
    """All messages of a stream have the same length, which is what they are counted by; bodies have the one said."""
    load = _EVERY[name]
    destination = Destination(Address("localhost", 5672), load)
    lengths = {len(chunk) for chunk in islice(chunks(destination, 0), 3)}
    assert len(lengths) == 1
    assert {len(body) for body in load.bodies} == {load.size}


def test_keys_alternate_where_nothing_repeats() -> None:
    """A message that is like no other has another routing key than the one before it, too."""
    destination = Destination(Address("localhost", 5672), ALTERNATING)
    publishes = [each for each in _frames(bytes(next(chunks(destination, 0)))) if each[0] == METHOD]
    assert len(set(publishes)) == 100
    assert all(one != other for one, other in pairwise(publishes))


@pytest.mark.parametrize("size", [1, 200, 100_000, 300_000])
def test_a_delivery_is_learned_from_its_first_byte_to_its_last(size: int) -> None:
    """Of one body frame or of several; not before it is whole."""
    tag = short(consumer_tag(7)) + struct.pack(">QB", 1, 0)
    body = bytes(range(256)) * (size // 256 + 1)
    chunks_of_it = [body[at : min(at + 100_000, size)] for at in range(0, size, 100_000)]
    delivery = method(CHANNEL, 60, 60, tag + short("") + short("queue"))
    delivery += frame(HEADER, CHANNEL, struct.pack(">HHQHB", 60, 0, size, 0x1000, 1))
    delivery += b"".join([frame(BODY, CHANNEL, chunk) for chunk in chunks_of_it])
    assert learn(memoryview(delivery[:-1])) is None
    layout = learn(memoryview(delivery + delivery[:30]))
    assert layout
    assert layout.length == len(delivery)
    assert layout.verify(memoryview(delivery), 0, 1) == chunks_of_it[0]
