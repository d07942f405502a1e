"""Contents on their way to the peer: basic.deliver, basic.return, basic.get-ok, and confirms in bulk.

Frames of messages that are alike in facts, properties and body length differ only in delivery tag and body, so they are
laid out as columns and joined once. Where they differ, what stands around tags and bodies is made once of each sort.
Large bodies are not joined: they are written from where they are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TypeVar

from services.common.message.alike import are_alike, objects
from services.common.message.amqp_0_9 import NAME
from services.common.message.facts import EXCHANGE, FORMAT, KEY
from services.gateway.answers import Deliveries
from services.gateway.protocols.amqp_0_9 import frames
from services.gateway.protocols.amqp_0_9.compression import Recode
from services.gateway.protocols.amqp_0_9.counted import counted
from services.gateway.protocols.amqp_0_9.foreign import native
from services.gateway.protocols.amqp_0_9.method import Method, encode
from services.gateway.protocols.amqp_0_9.methods import basic
from services.gateway.protocols.amqp_0_9.wire import short_length, short_string
from services.gateway.protocols.dealings import Chunk

_EXCHANGE, _KEY, _FORMAT = map(itemgetter, (EXCHANGE, KEY, FORMAT))
_TAG = struct.Struct(">Q")
_HEADER = struct.Struct(">HHQ")
_HEADER_FRAME = struct.Struct(">BHIHHQ")  # up to the properties
_BODY_HEAD = struct.Struct(">BBHI")  # with the end of the frame before
_CLASS_BASIC = 60
_LARGE = 4096  # bytes of a body, on average: below, joining costs less than writing in pieces
_FEW = 8
_TAG_AT = 4  # in basic.ack and basic.nack: behind class and method id

_T = TypeVar("_T", bound=Hashable)
_Column = bytes | Sequence[bytes]


def content(channel: int, method: Method, properties: bytes, body: bytes, frame_max: int) -> bytes:
    """A method frame with the content that belongs to it."""
    parts: list[Chunk] = [frames.frame(frames.METHOD, channel, encode(method))]
    parts += _content_parts(channel, properties, body, frame_max)
    return b"".join(parts)


def deliveries(channel: int, run: Deliveries, frame_max: int, recode: Recode | None = None) -> Sequence[Chunk]:
    """Some basic.deliver, for one consumer, in chunks."""
    bodies, properties, facts = run.bodies, run.properties, run.facts
    distinct = objects(facts)
    if set(map(_FORMAT, distinct.values())) != {NAME}:
        properties, bodies = native(facts, properties, bodies)
    properties = counted(properties, run.attempts, run.acquired)
    if recode:
        properties, bodies = recode(properties, bodies)
    chunk = frame_max - frames.OVERHEAD
    if len(bodies) == 1 and 0 < len(bodies[0]) <= chunk:
        return _only(channel, run, properties[0], bodies)
    tags = list(map(_TAG.pack, range(run.first, run.first + len(bodies))))
    if 2 * len(distinct) > len(facts) > _FEW and max(map(len, bodies)) <= chunk and all(bodies):
        return _chunks(_keyed(channel, run, tags, properties, bodies), bodies)
    around = {
        identity: _around_tag(channel, run.tag, run.redelivered, each.exchange, each.routing_key)
        for identity, each in distinct.items()
    }
    sole = around[id(facts[0])] if len(around) == 1 else None  # equal ones need not be one object
    if sole and 0 < len(bodies[0]) <= chunk and len(set(map(len, bodies))) == 1:
        if are_alike(properties):
            return _chunks(_alike(channel, *sole, tags, properties[0], bodies), bodies)
        if len(set(map(len, properties))) == 1:
            return _chunks(_of_one_size(channel, *sole, tags, properties, bodies), bodies)
    parts: list[Chunk] = []
    for tag, its_facts, its_properties, body in zip(tags, facts, properties, bodies, strict=True):
        size, (before, after) = len(body), sole or around[id(its_facts)]
        if not 0 < size <= chunk:
            parts += (before, tag, after, *_content_parts(channel, its_properties, body, frame_max))
            continue
        middle, behind = _around_properties(channel, len(its_properties), size)
        parts += (before, tag, after, middle, its_properties, behind, body, frames.END_OCTET)
    return _chunks(parts, bodies)


def _only(channel: int, run: Deliveries, properties: bytes, bodies: Sequence[bytes]) -> Sequence[Chunk]:
    """One, as most are where messages go to many queues. Its body fits into a frame; nothing is laid out for it."""
    facts, (body,) = run.facts[0], bodies
    before, after = _around_tag(channel, run.tag, run.redelivered, facts.exchange, facts.routing_key)
    middle, behind = _around_properties(channel, len(properties), len(body))
    return _chunks((before, _TAG.pack(run.first), after, middle, properties, behind, body, frames.END_OCTET), bodies)


@lru_cache(maxsize=4096)
def _around_properties(channel: int, properties: int, size: int) -> tuple[bytes, bytes]:
    """What stands before so many bytes of properties, and between them and a body of `size` that fits into a frame."""
    return _header_up_to(channel, properties, size), _body_head(channel, size)


def _keyed(
    channel: int, run: Deliveries, tags: Sequence[bytes], properties: Sequence[bytes], bodies: Sequence[bytes]
) -> Sequence[Chunk]:
    """Where hardly any two have the same key: nothing is made for a key, and bodies fit into a frame each."""

    def front(form: tuple[str, int]) -> tuple[bytes, bytes]:
        exchange, key = form
        before, after = _without_key(run.tag, run.redelivered, exchange)
        head = frames.HEAD.pack(frames.METHOD, channel, len(before) + _TAG.size + len(after) + 1 + key)
        return head + before, after + short_length(key)

    def middle(sizes: tuple[int, int]) -> tuple[bytes, bytes]:
        return frames.END_OCTET + _header_up_to(channel, *sizes), _body_head(channel, sizes[1])

    keys = list(map(str.encode, map(_KEY, run.facts)))
    before, after = _made_once(list(zip(map(_EXCHANGE, run.facts), map(len, keys), strict=True)), front)
    between, behind = _made_once(list(zip(map(len, properties), map(len, bodies), strict=True)), middle)
    return _laid_out(before, tags, after, keys, between, properties, behind, bodies)


def _made_once(sorts: Sequence[_T], make: Callable[[_T], tuple[bytes, bytes]]) -> tuple[_Column, _Column]:
    """Two columns, or what is the same in all, made once of each sort."""
    made = {sort: make(sort) for sort in set(sorts)}
    if len(made) == 1:
        return made[sorts[0]]
    before, after = zip(*map(made.__getitem__, sorts), strict=True)
    return before, after


def _chunks(parts: Sequence[Chunk], bodies: Sequence[bytes]) -> Sequence[Chunk]:
    return parts if sum(map(len, bodies)) > _LARGE * len(bodies) else (b"".join(parts),)


def confirms(channel: int, first: int, last: int, *, accepted: bool) -> bytes:
    """One basic.ack, or basic.nack, for each of `first`..`last`."""
    before, after = _around_confirm(channel, accepted)
    return before + (after + before).join(map(_TAG.pack, range(first, last + 1))) + after


@lru_cache(maxsize=1024)
def _around_confirm(channel: int, accepted: bool) -> tuple[bytes, bytes]:
    """The frame of a confirm, up to its tag and behind it."""
    method: Method = basic.Ack(0, False) if accepted else basic.Nack(0, False, False)
    whole = frames.frame(frames.METHOD, channel, encode(method))
    tag_at = frames.HEAD.size + _TAG_AT
    return whole[:tag_at], whole[tag_at + _TAG.size :]


@lru_cache(maxsize=4096)
def _around_tag(channel: int, tag: str, redelivered: bool, exchange: str, routing_key: str) -> tuple[bytes, bytes]:
    """The method frame of a delivery, up to its tag and behind it. What repeats is remembered."""
    before, after = _without_key(tag, redelivered, exchange)
    key = short_string(routing_key)
    head = frames.HEAD.pack(frames.METHOD, channel, len(before) + _TAG.size + len(after) + len(key))
    return head + before, b"".join((after, key, frames.END_OCTET))


@lru_cache(maxsize=4096)
def _without_key(tag: str, redelivered: bool, exchange: str) -> tuple[bytes, bytes]:
    """A delivery's arguments up to its tag, and behind that up to its key, which is the last: it may be always new."""
    payload = encode(basic.Deliver(tag, 0, redelivered, exchange, ""))
    tag_at = _TAG_AT + len(short_string(tag))
    return payload[:tag_at], payload[tag_at + _TAG.size : -len(short_string(""))]


def _header_frame(channel: int, properties: bytes, size: int) -> bytes:
    return frames.frame(frames.HEADER, channel, _HEADER.pack(_CLASS_BASIC, 0, size) + properties)


def _header_up_to(channel: int, properties: int, size: int) -> bytes:
    """A header frame up to its properties, of so many bytes, of a body of `size` bytes."""
    return _HEADER_FRAME.pack(frames.HEADER, channel, _HEADER.size + properties, _CLASS_BASIC, 0, size)


def _body_head(channel: int, size: int) -> bytes:
    """What stands between the properties and a body of `size` bytes, which fit into one frame."""
    return _BODY_HEAD.pack(frames.END, frames.BODY, channel, size)


def _head(channel: int, properties: bytes, size: int) -> bytes:
    """What stands between the method frame and a body of `size` bytes, which fit into one frame."""
    return b"".join((_header_up_to(channel, len(properties), size), properties, _body_head(channel, size)))


def _alike(
    channel: int, before: bytes, after: bytes, tags: Sequence[bytes], properties: bytes, bodies: Sequence[bytes]
) -> list[Chunk]:
    """Where only tags and bodies differ, and the sizes of bodies do not."""
    return _laid_out(before, tags, after + _head(channel, properties, len(bodies[0])), bodies)


def _of_one_size(
    channel: int,
    before: bytes,
    after: bytes,
    tags: Sequence[bytes],
    properties: Sequence[bytes],
    bodies: Sequence[bytes],
) -> list[Chunk]:
    """Where properties differ as well, and their sizes do not."""
    size = len(bodies[0])
    middle = after + _header_up_to(channel, len(properties[0]), size)
    return _laid_out(before, tags, middle, properties, _body_head(channel, size), bodies)


def _laid_out(*columns: _Column) -> list[Chunk]:
    """What goes out of some messages, each with the end of a frame behind it: columns, or what is the same in all."""
    count, width = len(columns[-1]), len(columns) + 1
    parts: list[Chunk] = [frames.END_OCTET] * (width * count)
    for index, column in enumerate(columns):
        parts[index::width] = [column] * count if isinstance(column, bytes) else column
    return parts


def _content_parts(channel: int, properties: bytes, body: bytes, frame_max: int) -> Iterable[Chunk]:
    """The content frames of one message, in pieces."""
    size, chunk = len(body), frame_max - frames.OVERHEAD
    header = _header_frame(channel, properties, size)
    if not size:
        return (header,)
    if size <= chunk:
        return (_head(channel, properties, size), body, frames.END_OCTET)
    parts: list[Chunk] = [header]
    whole = memoryview(body)
    for start in range(0, size, chunk):
        piece = whole[start : start + chunk]
        parts += (frames.HEAD.pack(frames.BODY, channel, len(piece)), piece, frames.END_OCTET)
    return parts
