"""Contents on their way to the peer: basic.deliver, basic.return, basic.get-ok, and confirms in bulk.

Nothing here is done per message that can be done per run: the frames of a run that is alike in properties and body
length differ only in delivery tag and body, so they are laid out as columns and joined once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache

from services.gateway.protocols.amqp_0_9 import frames
from services.gateway.protocols.amqp_0_9.method import Method, encode
from services.gateway.protocols.amqp_0_9.methods import basic
from services.gateway.vocabulary import Deliveries

_TAG = struct.Struct(">Q")
_HEADER = struct.Struct(">HHQ")
_CLASS_BASIC = 60
_TAG_AT = 4  # in basic.ack and basic.nack: behind class and method id


def content(channel: int, method: Method, properties: bytes, body: bytes, frame_max: int) -> bytes:
    """A method frame with the content that belongs to it."""
    parts = [frames.frame(frames.METHOD, channel, encode(method))]
    parts += _content_parts(channel, properties, body, frame_max)
    return b"".join(parts)


def deliveries(channel: int, run: Deliveries, frame_max: int) -> bytes:
    """A run of basic.deliver."""
    before, after = _around_tag(channel, run.tag, run.redelivered, run.exchange, run.routing_key)
    bodies, properties = list(run.bodies), list(run.properties)
    pack = _TAG.pack
    tags = [pack(number) for number in range(run.first, run.first + len(bodies))]
    size = len(bodies[0])
    alike = size <= frame_max - frames.OVERHEAD and properties.count(properties[0]) == len(properties)
    if alike and len(set(map(len, bodies))) == 1:
        return _alike(channel, before, tags, after, properties[0], bodies)
    parts: list[bytes] = []
    for tag, its_properties, body in zip(tags, properties, bodies, strict=True):
        parts += (before, tag, after)
        parts += _content_parts(channel, its_properties, body, frame_max)
    return b"".join(parts)


def confirms(channel: int, first: int, last: int, *, accepted: bool) -> bytes:
    """One basic.ack, or basic.nack, for each of `first`..`last`."""
    method: Method = basic.Ack(0, False) if accepted else basic.Nack(0, False, False)
    whole = frames.frame(frames.METHOD, channel, encode(method))
    tag_at = frames.HEAD.size + _TAG_AT
    before, after = whole[:tag_at], whole[tag_at + _TAG.size :]
    return before + (after + before).join(map(_TAG.pack, range(first, last + 1))) + after


@lru_cache(maxsize=4096)
def _around_tag(channel: int, tag: str, redelivered: bool, exchange: str, routing_key: str) -> tuple[bytes, bytes]:
    """The method frame of a delivery, up to its tag and behind it. What repeats is remembered."""
    whole = frames.frame(frames.METHOD, channel, encode(basic.Deliver(tag, 0, redelivered, exchange, routing_key)))
    tag_at = frames.HEAD.size + _TAG_AT + 1 + len(tag.encode())
    return whole[:tag_at], whole[tag_at + _TAG.size :]


def _header_frame(channel: int, properties: bytes, size: int) -> bytes:
    return frames.frame(frames.HEADER, channel, _HEADER.pack(_CLASS_BASIC, 0, size) + properties)


def _alike(
    channel: int, before: bytes, tags: Sequence[bytes], after: bytes, properties: bytes, bodies: Sequence[bytes]
) -> bytes:
    count, size = len(bodies), len(bodies[0])
    middle, end = after + _header_frame(channel, properties, size), b""
    if size:
        middle += frames.HEAD.pack(frames.BODY, channel, size)
        end = frames.END_OCTET
    parts = [before] * (5 * count)
    parts[1::5] = tags
    parts[2::5] = [middle] * count
    parts[3::5] = bodies
    parts[4::5] = [end] * count
    return b"".join(parts)


def _content_parts(channel: int, properties: bytes, body: bytes, frame_max: int) -> Iterable[bytes]:
    """The content frames of one message, in pieces."""
    size, chunk = len(body), frame_max - frames.OVERHEAD
    header = _header_frame(channel, properties, size)
    if not size:
        return (header,)
    if size <= chunk:
        return (header, frames.HEAD.pack(frames.BODY, channel, size), body, frames.END_OCTET)
    parts = [header]
    for start in range(0, size, chunk):
        piece = body[start : start + chunk]
        parts += (frames.HEAD.pack(frames.BODY, channel, len(piece)), piece, frames.END_OCTET)
    return parts
