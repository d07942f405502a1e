"""Columns of numbers in proto/ledger.proto that are bytes: 32 bits each, little-endian. Read and written whole."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable


def packed(numbers: Iterable[int]) -> bytes:
    """Raises OverflowError for a number below 0 or above 2^32 - 1."""
    return _in_order(array("I", numbers)).tobytes()


def unpacked(column: bytes) -> array[int]:
    """Raises ValueError for bytes that are no whole numbers."""
    return _in_order(array("I", column))


def _in_order(column: array[int]) -> array[int]:
    if sys.byteorder == "big":
        column.byteswap()
    return column
