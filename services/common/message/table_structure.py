"""Which octets of a field table (0-9-1 section 4.2.5.5) say how it is built: sizes, names and types.

Nothing is decoded. Between these are values, which may be any octets: so a table that has the same ones at the same
places as one that can be read can be read as well.
"""

from __future__ import annotations

import struct
from typing import Final

from services.common.errors import SyntaxFault
from services.common.message.field_table import HOLDING, MAX_DEPTH, SIZED, SIZES, name_of, sized

Ranges = list[tuple[int, int]]
"""Begin and end of each, ascending."""

_FIXED: Final = {ord(letter): size for letter, size in SIZES.items()}
_HOLDING: Final = frozenset(map(ord, HOLDING))
_SIZED: Final = frozenset(map(ord, SIZED))
_TABLE: Final = ord("F")


def structure(table: bytes) -> Ranges:
    """Of the table in `table`, its length first, to the end; raises SyntaxFault where `field_table.decode` does.

    But not for the number of its values: what it takes grows with that.
    """
    found: Ranges = []
    try:
        end = _within(table, 0, MAX_DEPTH, found, named=True)
    except (struct.error, IndexError) as error:
        raise SyntaxFault("a field table ends early") from error
    if end != len(table):
        raise SyntaxFault("bytes after the end of a field table")
    return found


def _within(data: bytes, begin: int, depth: int, found: Ranges, *, named: bool) -> int:
    """Of the table, or array, whose size stands at `begin`: adds its ranges, and gives where it ends."""
    position, end = sized(data, begin)
    while position < end:
        if named:
            start = position + 1
            position = start + data[position]
            name_of(data[start:position])
        letter = data[position]
        position += 1
        if not depth:
            raise SyntaxFault(f"field tables nested deeper than {MAX_DEPTH}")
        if (size := _FIXED.get(letter)) is not None:
            value, after = position, position + size
        elif letter in _HOLDING:
            value, after = position, _within(data, position, depth - 1, found, named=letter == _TABLE)
        elif letter in _SIZED:
            value, after = sized(data, position)
        else:
            raise SyntaxFault(f"unknown field type {letter:#04x}")
        if after > value:
            found.append((begin, value))
            begin = after
        position = after
    if position != end:
        raise SyntaxFault("a field reaches over the end of what holds it")
    if begin < end:
        found.append((begin, end))
    return end
