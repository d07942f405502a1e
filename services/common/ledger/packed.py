"""Columns of numbers that proto/ledger.proto has as bytes: little-endian. Read and written whole."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from typing import Final

NUMBERS: Final = "I"
"""Numbers of 32 bits."""
UIDS: Final = "Q"
"""Numbers of 64 bits."""


def packed(kind: str, numbers: Iterable[int]) -> bytes:
    """The numbers as bytes. Raises OverflowError for a number below 0 or too large for `kind`."""
    return _in_order(array(kind, numbers)).tobytes()


def unpacked(kind: str, column: bytes) -> array[int]:
    """The numbers of a column. Raises ValueError when its length is not a multiple of a number's."""
    return _in_order(array(kind, column))


def _in_order(column: array[int]) -> array[int]:
    if sys.byteorder == "big":
        column.byteswap()
    return column
