"""Batches with their large bodies in front of all else, as the first fields of a frame.

Protobuf copies a body several times on its way into a frame and out of one. A field may stand anywhere in a message of
protobuf, and such a frame is one to any reader; but its bodies need not be copied to be written, and are cut out of it
once when it is read. Small ones are quicker with protobuf.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import NamedTuple, TypeAlias

from google.protobuf.message import DecodeError, Message

from services.rpc import queue_pb2 as pb

Parts: TypeAlias = list[bytes]
"""The wire form of a message, one part behind the other."""

_LARGE = 4096  # bytes of a body, on average
_LENGTH_DELIMITED = 2  # wire type
_MORE = 0x80  # bit of an octet of a varint that has another one behind it
_LONGEST = 5  # octets of the varint of a length


def _tag(message: type[Message], field: str) -> int:
    """The one octet that stands in front of such a field."""
    return int(message.DESCRIPTOR.fields_by_name[field].number) << 3 | _LENGTH_DELIMITED


class Layout(NamedTuple):
    """Which field of a frame is a batch, and which field of that one are bodies: the tags of both."""

    batch: int
    bodies: int


PUBLISHES = Layout(_tag(pb.LinkFrame, "publishes"), _tag(pb.PublishBatch, "bodies"))
DELIVERIES = Layout(_tag(pb.QueueFrame, "deliveries"), _tag(pb.DeliveryBatch, "bodies"))


def pays(bodies: Sized, size: int) -> bool:
    """Whether bodies are better in front; `size` is about that of all of them."""
    return size > _LARGE * len(bodies) > 0


def batch(layout: Layout, bodies: Sequence[bytes], rest: Message) -> Parts:
    """A batch; `rest` is all of it but its bodies."""
    parts: Parts = []
    for body in bodies:
        parts += (_head(layout.bodies, len(body)), body)
    return _with(parts, rest)


def frame(layout: Layout, batches: Sequence[bytes | Parts], rest: Message) -> Parts:
    """A frame; `rest` is all of it but its batches."""
    parts: Parts = []
    for each in batches:
        whole = [each] if isinstance(each, bytes) else each
        parts.append(_head(layout.batch, sum(map(len, whole))))
        parts += whole
    return _with(parts, rest)


def batches(layout: Layout, data: bytes) -> tuple[list[memoryview], int]:
    """The batches in front of a frame, if the first has bodies in front, and where the rest of the frame begins.

    Raises DecodeError for a frame that is cut off.
    """
    found: list[memoryview] = []
    if not (data and data[0] == layout.batch):
        return found, 0
    first, at = _length(data, 1)
    if not (first and data[at : at + 1] == bytes((layout.bodies,))):
        return found, 0
    view, at, end = memoryview(data), 0, len(data)
    while at < end and data[at] == layout.batch:
        size, at = _length(data, at + 1)
        found.append(view[at : at + size])
        at += size
    _within(at, end)
    return found, at


def bodies(layout: Layout, data: bytes | memoryview) -> tuple[list[bytes], int]:
    """The bodies in front of a batch, and where the rest of it begins. Raises DecodeError for one that is cut off."""
    found: list[bytes] = []
    at, end = 0, len(data)
    while at < end and data[at] == layout.bodies:
        size, at = _length(data, at + 1)
        found.append(bytes(data[at : at + size]))
        at += size
    _within(at, end)
    return found, at


def _with(parts: Parts, rest: Message) -> Parts:
    if behind := rest.SerializeToString():
        parts.append(behind)
    return parts


def _head(tag: int, size: int) -> bytes:
    """In front of a field of so many octets."""
    head = bytearray((tag,))
    while size >= _MORE:
        head.append(size % _MORE | _MORE)
        size //= _MORE
    head.append(size)
    return bytes(head)


def _length(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The varint at a place, and where it ends."""
    size = shift = 0
    for octet in data[at : at + _LONGEST]:
        at += 1
        size |= (octet % _MORE) << shift
        if octet < _MORE:
            return size, at
        shift += 7
    raise DecodeError("a length that does not end")


def _within(at: int, end: int) -> None:
    if at > end:
        raise DecodeError(f"a field that ends {at - end} octets behind its message")
