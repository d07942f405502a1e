"""What a broker knows of a message without looking at its properties: declared once, with its one codec.

A fact that is added here (and as a field of the same name in MessageFacts, proto/queue.proto) is read by the formats
that can say it, used by the feature that wants it, and passed on by everything else.
"""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from sys import intern
from typing import Any, Final, NamedTuple

from services.rpc.queue_pb2 import MessageFacts, PublishRun

_REMEMBERED: Final = 8192  # what repeats is translated once; of keys that never come back the oldest go


class Facts(NamedTuple):
    """Of one message, and of all that are alike but for identity, properties and body."""

    virtual_host: str
    exchange: str
    routing_key: str
    format: str  # name of the message format that wrote the properties
    persistent: bool = False
    priority: int = 0  # 0 to 255
    ttl_ms: int | None = None  # the message's own expiration
    not_before: int | None = None  # Unix ms: queues that hold messages do not deliver it before that
    publisher: str = ""  # the connection that it came on, if a consumer of that connection wants none of its own


class Attributes(NamedTuple):
    """What a format reads from properties: facts first, then what a broker looks at before it takes a message in."""

    persistent: bool = False
    priority: int = 0
    ttl_ms: int | None = None
    not_before: int | None = None
    user_id: str | None = None  # must be the connection's user
    direct_reply: bool = False  # reply-to is the pseudo-queue amq.rabbitmq.reply-to
    sampled: bool = False  # its publisher seems to trace it: worth a look at `trace_context`
    copied: bool = False  # it seems to go by more keys than one: worth a look at `more_keys`
    delay_ms: int | None = None  # it is not to be delivered before so long after it was received


_ADDRESS: Final = 4  # facts that no properties say, nor the last one; what they say is in both, in the same order
SAID: Final = len(Facts._fields) - _ADDRESS - 1
"""So many of the first attributes are facts."""


def facts_of(virtual_host: str, exchange: str, routing_key: str, format_name: str, attributes: Attributes) -> Facts:
    """Of a message with such an address, whose properties say `attributes`."""
    said = attributes[:SAID]  # a test holds their order to that of Facts
    # Where all messages differ there is one for each: `Facts` itself would take another call.
    return tuple.__new__(Facts, (virtual_host, exchange, routing_key, format_name, *said, ""))


EXCHANGE: Final = Facts._fields.index("exchange")
FORMAT: Final = Facts._fields.index("format")

# A key that never comes back has facts of its own, as has an expiration, so these are made and read for each message of
# such a stream: what else they say is one object for all of them, and written down once.
KEY: Final = Facts._fields.index("routing_key")
_NAMED: Final = MessageFacts.DESCRIPTOR.fields_by_name
_TEXT: Final = 2  # protobuf's wire type
KEY_TAG: Final = bytes((_NAMED["routing_key"].number << 3 | _TEXT,))
_REPEATING: Final = tuple(map(Facts._fields.index, ("virtual_host", "exchange", "format", "publisher")))
_OPTIONAL: Final = tuple(name for name, value in Facts._field_defaults.items() if value is None)
NUMBERS: Final = Facts._fields.index(_OPTIONAL[0])
"""The index of the first of the facts that are numbers, or None; a test holds them to stand together."""
BEHIND: Final = NUMBERS + len(_OPTIONAL)
"""The index of the first fact behind them."""
TAGS: Final = tuple(_NAMED[name].number << 3 for name in _OPTIONAL)  # protobuf's wire type of numbers is 0
OCTETS_OF_NUMBER: Final = 9  # at the most: seven bits each
_OF_RUNS: Final = tuple(name for name in Facts._fields if name in PublishRun.DESCRIPTOR.fields_by_name)
_values: Final = attrgetter(*Facts._fields)


@lru_cache(_REMEMBERED)
def to_bytes(facts: Facts) -> bytes:
    """A serialised MessageFacts."""
    before, after = around_key(facts[:KEY], facts[KEY + 1 :])
    if not (key := facts.routing_key.encode()):
        return before + after
    return b"".join((before, KEY_TAG, varint(len(key)), key, after))


@lru_cache(_REMEMBERED)
def from_bytes(raw: bytes) -> Facts:
    """Of a serialised MessageFacts; equal bytes mostly give the same object. Raises DecodeError."""
    fields: Any = MessageFacts.FromString(raw)
    values = list(_values(fields))
    for index in _REPEATING:
        values[index] = intern(values[index])
    for name in _OPTIONAL:
        if not fields.HasField(name):
            values[Facts._fields.index(name)] = None
    return Facts._make(values)


def from_run(run: PublishRun) -> Facts:
    """Of a run of a former release, which says fewer facts: the others are as for messages without them."""
    fields: Any = run
    said = {name: getattr(fields, name) for name in _OF_RUNS if name not in _OPTIONAL or fields.HasField(name)}
    return Facts(**said)._replace(virtual_host=intern(run.virtual_host), exchange=intern(run.exchange))


def around_key(before: tuple[Any, ...], after: tuple[Any, ...]) -> tuple[bytes, bytes]:
    """What stands before the routing key, and behind it: fields come in the order of their numbers."""
    kind, numbers = after[: NUMBERS - KEY - 1], after[NUMBERS - KEY - 1 : BEHIND - KEY - 1]
    first, middle, last = around(before, kind, after[BEHIND - KEY - 1 :])
    return first, middle + of_numbers(numbers) + last


@lru_cache(_REMEMBERED)
def around(before: tuple[Any, ...], kind: tuple[Any, ...], behind: tuple[Any, ...]) -> tuple[bytes, bytes, bytes]:
    """What stands before the routing key, between that and the numbers, and behind these."""
    names = Facts._fields[:KEY], Facts._fields[KEY + 1 : NUMBERS], Facts._fields[BEHIND:]
    said = [dict(zip(its, values, strict=True)) for its, values in zip(names, (before, kind, behind), strict=True)]
    first, middle, last = [MessageFacts(**each).SerializeToString() for each in said]
    return first, middle, last


def of_numbers(numbers: tuple[Any, ...]) -> bytearray:
    """What stands there of the facts that are numbers."""
    octets = bytearray()
    add = octets.append
    for tag, number in zip(TAGS, numbers, strict=True):
        if number is not None:
            add(tag)
            left = number
            while left > 127:  # as in varint, without a call
                add(left & 127 | 128)
                left >>= 7
            add(left)
    return octets


def numbers_in(octets: bytes) -> tuple[int | None, ...] | None:
    """The numbers that stand there, one behind the other, and nothing else; None: protobuf has to say."""
    found: list[int | None] = []
    for tag in TAGS:
        if not octets or octets[0] != tag:
            found.append(None)
            continue
        number = shift = 0
        for octet in octets[1 : 1 + OCTETS_OF_NUMBER]:
            if octet < 128:
                break
            number |= (octet & 127) << shift
            shift += 7
        else:
            return None
        found.append(number | octet << shift)
        octets = octets[2 + shift // 7 :]
    return None if octets else tuple(found)


def varint(number: int) -> bytes:
    """As protobuf has it: seven bits an octet, the lowest first."""
    octets = bytearray()
    while number > 127:
        octets.append(number & 127 | 128)
        number >>= 7
    octets.append(number)
    return bytes(octets)
