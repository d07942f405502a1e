"""The shape of a delivery on the wire, learned from the first one: from then on messages are counted by their bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from benchmarks.failure import BenchmarkError
from benchmarks.wire import CONSUMER_TAG, frame_length, refusal

_TAG_OFFSET = 7 + 4 + 1 + len(CONSUMER_TAG)
_METHOD = struct.Struct(">BHIHH")
_TAG = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class Layout:
    """Every delivery of a consumer has this many bytes, and its body at this offset."""

    length: int
    body_offset: int

    def verify(self, data: memoryview, offset: int, tag: int, body: bytes) -> None:
        """Raises BenchmarkError unless the delivery at `offset` is whole and is number `tag` with `body`."""
        if _METHOD.unpack_from(data, offset)[3:] != (60, 60):
            said = refusal(bytes(data[offset : offset + 300])) or bytes(data[offset : offset + 32]).hex()
            raise BenchmarkError(f"a consumer received no delivery: {said}")
        if (found := _TAG.unpack_from(data, offset + _TAG_OFFSET)[0]) != tag:
            raise BenchmarkError(f"delivery {tag} has the delivery tag {found}")
        start = offset + self.body_offset
        if data[start : start + len(body)] != body:
            raise BenchmarkError(f"delivery {tag} has another body than was sent")


def learn(data: memoryview) -> Layout | None:
    """The layout, once a whole delivery (method, header and one body frame) stands at the start of `data`."""
    if len(data) >= 11 and _METHOD.unpack_from(data)[3:] != (60, 60):
        raise BenchmarkError(f"a consumer received no delivery: {refusal(bytes(data)) or bytes(data[:32]).hex()}")
    offset = start = 0
    for _ in range(3):
        start = offset
        length = frame_length(data, offset)
        offset += length
        if not length or offset > len(data):
            return None
    return Layout(offset, start + 7)
