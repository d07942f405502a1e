"""Columns of numbers that proto/ledger.proto has as bytes: little-endian. Read and written whole."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import Final

NUMBERS: Final = "I"
"""Numbers of 32 bits."""
UIDS: Final = "Q"
"""Numbers of 64 bits."""


def packed(kind: str, numbers: Iterable[int]) -> bytes:
    """The numbers as bytes. Raises OverflowError for a number below 0 or too large for `kind`."""
    return _in_order(array(kind, numbers)).tobytes()


def looked_up(indexes: Sequence[int], numbers: Sequence[int]) -> bytes:
    """The numbers at these indexes, as NUMBERS; of bytes, and few numbers, byte by byte of each number, all at once."""
    if not isinstance(indexes, bytes):
        return packed(NUMBERS, map(numbers.__getitem__, indexes))
    column = bytearray(4 * len(indexes))
    for place, digits in enumerate(zip(*[number.to_bytes(4, "little") for number in numbers], strict=True)):
        if any(digits):
            column[place::4] = indexes.translate(bytes(digits[:256]).ljust(256, b"\0"))
    return bytes(column)


def unpacked(kind: str, column: bytes) -> array[int]:
    """The numbers of a column. Raises ValueError when its length is not a multiple of a number's."""
    return _in_order(array(kind, column))


def _in_order(column: array[int]) -> array[int]:
    if sys.byteorder == "big":
        column.byteswap()
    return column
