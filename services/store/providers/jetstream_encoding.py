"""Commit groups as messages of a stream, and back; and the place of a content's columns in them.

A group is a head, as a protobuf message, then the columns of its contents. It is cut into parts that fit into a message
each; it counts when all parts are there, one directly behind the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from struct import Struct, error
from typing import NamedTuple

from google.protobuf.message import DecodeError

from services.common.errors import InternalError
from services.rpc.store_log_pb2 import Group, Replaced
from services.rpc.store_pb2 import Record
from services.store.backup.wire import from_piece, to_piece
from services.store.provider import Changes

_VERSION = 1
_HEAD = Struct(">BQQII")  # version, writer, number, nth, total
_LENGTH = Struct(">I")
_PLACE = Struct(">QIII")
_SIZE, _SIZE_AT = Struct(">I"), 12  # in a packed place


class Part(NamedTuple):
    """A message of the stream. Messages that are no groups have a number too: that of the last group before them."""

    writer: int
    number: int
    nth: int  # from 0 on
    total: int
    body: bytes

    def encode(self) -> bytes:
        """The message's bytes."""
        return _HEAD.pack(_VERSION, self.writer, self.number, self.nth, self.total) + self.body

    @classmethod
    def decode(cls, message: bytes) -> Part:
        """Reads a message. Raises InternalError where it is none of a store's, or of a later release."""
        if len(message) < _HEAD.size or message[0] != _VERSION:
            raise InternalError("there is a message in the stream that this release does not understand")
        _, writer, number, nth, total = _HEAD.unpack_from(message)
        return cls(writer, number, nth, total, message[_HEAD.size :])


class ContentPosition(NamedTuple):
    """Where a content's columns are: in the group whose first part has `sequence`, `size` bytes from `offset` on.

    All its parts but the last have `cut` bytes of it.
    """

    sequence: int
    offset: int
    size: int
    cut: int

    def pack(self) -> bytes:
        """The place as few bytes: an index has one for each content."""
        return _PLACE.pack(*self)

    @classmethod
    def unpack(cls, packed: bytes) -> ContentPosition:
        return cls._make(_PLACE.unpack(packed))

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """(sequence of the part, from, to) for each part that has some of it."""
        at, end = self.offset, self.offset + self.size
        while at < end:
            index = at // self.cut
            until = min(end, (index + 1) * self.cut)
            yield self.sequence + index, at - index * self.cut, until - index * self.cut
            at = until


def size_at(packed: bytes) -> int:
    """The size in a packed place, without the rest of it."""
    (size,) = _SIZE.unpack_from(packed, _SIZE_AT)
    return int(size)


def room(largest: int) -> int:
    """Bytes of a group that fit into a part, where a message may have `largest`."""
    return largest - _HEAD.size


def parts(writer: int, number: int, body: bytes, cut: int) -> list[Part]:
    """Parts of `body`, with `cut` bytes in each."""
    total = max(1, -(-len(body) // cut))
    return [Part(writer, number, nth, total, body[nth * cut : (nth + 1) * cut]) for nth in range(total)]


def encode(changes: Changes) -> bytes:
    """A group as bytes."""
    columns = [*changes.contents.values(), *changes.blanked.values()]
    bare = replace(changes, contents=dict.fromkeys(changes.contents, b""), blanked=dict.fromkeys(changes.blanked, b""))
    rows = to_piece(bare)
    rows.records.extend(
        Record(kind=kind, key=key, deleted=True) for (kind, key), row in changes.records.items() if row is None
    )
    head = Group(
        rows=rows,
        sizes=map(len, columns),
        dead_batches=changes.dead_batches,
        dead_contents=changes.dead_contents,
        replaced=[Replaced(partition=partition, origin=origin) for partition, origin in changes.replaced],
        running=changes.running,
    ).SerializeToString()
    return b"".join((_LENGTH.pack(len(head)), head, *columns))


def decode(body: bytes, sequence: int, cut: int) -> Changes:
    """What `encode` was given, with packed Places of a group at `sequence` as contents. Raises InternalError."""
    try:
        (length,) = _LENGTH.unpack_from(body)
        head = Group.FromString(body[_LENGTH.size : _LENGTH.size + length])
    except (ValueError, DecodeError, error) as wrong:
        raise InternalError(f"the group at {sequence} cannot be read: {wrong}") from wrong
    _place(head, ContentPosition(sequence, _LENGTH.size + length, 0, cut))
    deleted = [record for record in head.rows.records if record.deleted]
    changes = from_piece(head.rows)
    changes.dead_batches, changes.dead_contents = list(head.dead_batches), list(head.dead_contents)
    changes.replaced = {(each.partition, each.origin): None for each in head.replaced}
    changes.records.update(((record.kind, record.key), None) for record in deleted)
    changes.running = head.running
    return changes


def places(changes: Changes, body: bytes, sequence: int, cut: int) -> Changes:
    """As `decode`, for a caller that has the changes from which `body` was encoded."""
    sizes = [*map(len, changes.contents.values()), *map(len, changes.blanked.values())]
    found = iter(_along(sizes, ContentPosition(sequence, len(body) - sum(sizes), 0, cut)))
    # Both are taken in the order in which `encode` has them.
    contents = dict(zip(changes.contents, found, strict=False))
    return replace(changes, contents=contents, blanked=dict(zip(changes.blanked, found, strict=True)))


def _place(head: Group, first: ContentPosition) -> None:
    for content, place in zip(head.rows.contents, _along(list(head.sizes), first), strict=True):
        content.columns = place


def _along(sizes: list[int], first: ContentPosition) -> list[bytes]:
    """Packed places for these sizes, one behind the other."""
    found, offset = [], first.offset
    for size in sizes:
        found.append(ContentPosition(first.sequence, offset, size, first.cut).pack())
        offset += size
    return found
