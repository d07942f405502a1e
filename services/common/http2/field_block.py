"""The header fields that come on a connection: block after block, each in one frame or more (RFC 9113 section 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from hpack import Decoder, HPACKError

from services.common.http2.errors import ConnectionFault, ErrorCode
from services.common.http2.events import Fields
from services.common.http2.frames import Flag
from services.common.http2.known import keep
from services.common.http2.settings import OURS, Setting, initial

_LARGEST: Final = 64 << 10  # octets of a block, compressed
_KEPT, _FIELDS = 1000, 20  # octets and fields of one that is remembered
_TABLE: Final = initial()[Setting.HEADER_TABLE_SIZE]


class Block(NamedTuple):
    """A whole one; `ended`: it ends its stream."""

    stream: int
    fields: Fields
    ended: bool


class FieldBlocks:
    """What is compressed refers to the blocks before it, so all blocks are read, also of streams that are over."""

    def __init__(self) -> None:
        self._decoder = Decoder(OURS[Setting.MAX_HEADER_LIST_SIZE])
        self._part = bytearray()
        self._ended = False
        self._plain = True  # nothing is in the decoder's table, which has its first size: no block refers to others
        self.stream: int | None = None
        """The stream whose block is not complete: nothing but its rest may come."""

    @property
    def held(self) -> int:
        """Octets of a block that is not complete, or of the last one."""
        return len(self._part)

    def begin(self, stream: int, *, ended: bool) -> None:
        """A HEADERS frame has come."""
        self.stream, self._ended, self._part = stream, ended, bytearray()

    def add(self, part: bytes | memoryview, flags: int) -> Block | None:
        """The block that `part` completes. Raises ConnectionFault where it is too long, or cannot be read."""
        if self.stream is None:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a continuation of nothing")
        self._part += part
        if len(self._part) > _LARGEST:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, f"header fields of more than {_LARGEST} octets")
        if not flags & Flag.END_HEADERS:
            return None
        stream, self.stream = self.stream, None
        return Block(stream, list(self._decoded(bytes(self._part))), self._ended)

    def known(self, block: bytes) -> Sequence[tuple[str, str]] | None:
        """The fields of a block that has come before, here or on another connection, in one frame."""
        return _known.get(block) if self._plain else None

    def _decoded(self, block: bytes) -> Sequence[tuple[str, str]]:
        """What refers to no block before it is the same whenever it comes: nearly all blocks of ours are known."""
        known = self.known(block)
        if known is not None:
            return known
        was_plain = self._plain
        try:
            decoded: Iterable[Any] = self._decoder.decode(block)  # text, though hpack's types say bytes
            fields = tuple((str(name), str(value)) for name, value in decoded)
        except HPACKError:  # its text may tell addresses of our memory
            raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, "header fields that cannot be decoded") from None
        table = self._decoder.header_table
        self._plain = not table.dynamic_entries and table.maxsize == _TABLE
        if was_plain and self._plain and _is_small(block, fields):
            keep(_known, block, fields)
        return fields


_known: dict[bytes, tuple[tuple[str, str], ...]] = {}


def _is_small(block: bytes, fields: Sequence[tuple[str, str]]) -> bool:
    """Any process may connect, and say much in few octets."""
    return len(block) <= _KEPT and len(fields) <= _FIELDS
