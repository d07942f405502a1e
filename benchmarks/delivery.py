"""The shape of a delivery on the wire, learned from the first one: from then on messages are counted by their bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from benchmarks.failure import BenchmarkError
from benchmarks.wire import consumer_tag, frame_length, refusal

_TAG_OFFSET = 7 + 4 + 1 + len(consumer_tag(0))
_METHOD = struct.Struct(">BHIHH")
_TAG = struct.Struct(">Q")


_BODY_SIZE = struct.Struct(">Q")
_BODY_SIZE_OFFSET = 7 + 4  # in the header frame


@dataclass(frozen=True, slots=True)
class Layout:
    """Every delivery of a consumer has this many bytes, and its body, or the first frame of it, at this offset."""

    length: int
    body_offset: int
    body_length: int

    def verify(self, data: memoryview, offset: int, tag: int) -> bytes:
        """The body, or the first frame of it. Raises BenchmarkError unless the delivery at `offset` is number `tag`."""
        if _METHOD.unpack_from(data, offset)[3:] != (60, 60):
            said = refusal(bytes(data[offset : offset + 300])) or bytes(data[offset : offset + 32]).hex()
            raise BenchmarkError(f"a consumer received no delivery: {said}")
        if (found := _TAG.unpack_from(data, offset + _TAG_OFFSET)[0]) != tag:
            raise BenchmarkError(f"delivery {tag} has the delivery tag {found}")
        start = offset + self.body_offset
        return bytes(data[start : start + self.body_length])


def learn(data: memoryview) -> Layout | None:
    """The layout, once a whole delivery (method, header and body frames) stands at the start of `data`."""
    if len(data) >= 11 and _METHOD.unpack_from(data)[3:] != (60, 60):
        raise BenchmarkError(f"a consumer received no delivery: {refusal(bytes(data)) or bytes(data[:32]).hex()}")
    header = frame_length(data, 0)
    body = header + frame_length(data, header) if header else 0
    first = frame_length(data, body) if body > header else 0
    if not first or len(data) < body:
        return None
    (size,) = _BODY_SIZE.unpack_from(data, header + _BODY_SIZE_OFFSET)
    end, left = body, size
    while left > 0:
        length = frame_length(data, end)
        end, left = end + length, left - (length - 8)
        if not length or end > len(data):
            return None
    return Layout(end, body + 7, first - 8)
