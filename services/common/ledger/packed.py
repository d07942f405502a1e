"""Columns of numbers in proto/ledger.proto that are bytes: little-endian. Read and written whole."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from typing import Final

NUMBERS: Final = "I"
"""Of 32 bits."""
UIDS: Final = "Q"
"""Of 64 bits."""


def packed(kind: str, numbers: Iterable[int]) -> bytes:
    """Raises OverflowError for a number that is below 0 or too large for its kind."""
    return _in_order(array(kind, numbers)).tobytes()


def unpacked(kind: str, column: bytes) -> array[int]:
    """Raises ValueError for bytes that are no whole numbers."""
    return _in_order(array(kind, column))


def _in_order(column: array[int]) -> array[int]:
    if sys.byteorder == "big":
        column.byteswap()
    return column
