"""Deliveries as frames of transfers (part 2, sections 2.6.12 and 2.7.5).

Those of one link differ in their numbers and their messages only; what stands around these is made once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.composite import write
from services.common.message.amqp_1_0.encode import encode, encode_list
from services.gateway.protocols.amqp_1_0 import frames
from services.gateway.protocols.amqp_1_0.performatives import Transfer

_ID = struct.Struct(">I")
_LAST: Final = (1 << 32) - 1
_NULL: Final = encode(None)
_FIXED: Final = b"\x70"  # an uint of four bytes, whatever its value
_TAG: Final = b"\xa0\x04"  # a binary of four bytes: the number again, which no other delivery under way has
_DESCRIPTOR: Final = b"\x00" + encode(v.ULong(Transfer.descriptor))


class _Template(NamedTuple):
    """A transfer's performative without its number, which stands at two positions."""

    before: bytes
    between: bytes
    after: bytes

    @property
    def size(self) -> int:
        return len(self.before) + len(self.between) + len(self.after) + 2 * _ID.size


@lru_cache(1024)
def _template(handle: int, settled: bool, more: bool) -> _Template:
    marks = b"\x01\x02\x03\x04", b"\x05\x06\x07\x08"
    fields = [encode(v.UInt(handle)), _FIXED + marks[0], _TAG + marks[1], encode(v.UInt(0)), encode(settled)]
    before, _, rest = (_DESCRIPTOR + encode_list([*fields, encode(more)] if more else fields)).partition(marks[0])
    between, _, after = rest.partition(marks[1])
    return _Template(before, between, after)


def transfers(
    channel: int,
    handle: int,
    positions: Iterable[int],
    messages: Iterable[Sequence[bytes]],
    *,
    settled: bool,
    largest: int,
) -> Iterator[tuple[bytes, ...]]:
    """Frames, in pieces to be written one behind the other, none of more than `largest` bytes.

    `messages` are in pieces too. Each delivery's id is its position in the session, going round.
    """
    template = _template(handle, settled, more=False)
    before, between, after = template
    fixed = frames.HEAD.size + template.size
    pack_head, pack_id = frames.HEAD.pack, _ID.pack
    for position, message in zip(positions, messages, strict=False):
        number = position & _LAST
        size = fixed + sum(map(len, message))
        if size <= largest:
            its = pack_id(number)
            yield (pack_head(size, 2, frames.AMQP, channel), before, its, between, its, after, *message)
        else:
            yield from _pieces(channel, handle, number, b"".join(message), settled=settled, largest=largest)


def _pieces(
    channel: int, handle: int, number: int, message: bytes, *, settled: bool, largest: int
) -> Iterator[tuple[bytes, ...]]:
    """Several frames of one delivery (2.6.14): the first says all of it, the last has no `more`."""
    template, its = _template(handle, settled, more=True), _ID.pack(number)
    head = template.before + its + template.between + its + template.after
    end = largest - frames.HEAD.size - len(head)
    yield (frames.frame(frames.AMQP, channel, head + message[:end]),)
    following, last = write(Transfer(handle, more=True)), write(Transfer(handle))
    room = largest - frames.HEAD.size - len(following)
    while end < len(message):
        piece, end = message[end : end + room], end + room
        yield (frames.frame(frames.AMQP, channel, (following if end < len(message) else last) + piece),)
