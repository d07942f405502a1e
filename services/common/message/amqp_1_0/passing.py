"""Values of AMQP 1.0 that are passed over: nothing of them is read but their sizes (section 1.2)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from services.common.errors import SyntaxFault

DEEPEST: Final = 50
"""Compound values within each other: who sends more wants no answer but a stack that overflows."""

DESCRIBED: Final = 0x00

_FAULTS: Final = (struct.error, IndexError, KeyError)
_IN_BYTE: Final = 3  # values, at most, that an array's descriptors have: those in arrays of no width take none
_MOST_IN_DESCRIBED: Final = 2 * DEEPEST + 1  # a value with so many descriptors, one within the other


def skip(data: bytes, position: int) -> int:
    """Where the value at `position` ends; raises SyntaxFault."""
    try:
        code = data[position]
        end = _WIDTHS[code >> 4](data, position + 1) if code != DESCRIBED else _behind_described(data, position)
    except _FAULTS as error:
        raise SyntaxFault(f"no value begins with byte {position}") from error
    if end > len(data):
        raise SyntaxFault("a value ends early")
    return end


def _behind_described(data: bytes, position: int) -> int:
    """Descriptors may be described as well: each of them makes two values of one."""
    waiting = 1
    for _ in range(_MOST_IN_DESCRIBED):
        code, position = data[position], position + 1
        if code == DESCRIBED:
            waiting += 1
        else:
            position = _WIDTHS[code >> 4](data, position)
            waiting -= 1
        if not waiting:
            return position
    raise SyntaxFault(f"more than {DEEPEST} descriptors of one value")


def has_many(data: bytes, starts: Iterable[int], most: int) -> bool:
    """Whether there are more than so many values in those that start there.

    It looks no further than that. Where something is no value whoever reads it comes no further either.
    """
    try:
        for start in starts:
            most = _left(data, start, most)
            if most < 0:
                return True
    except (*_FAULTS, SyntaxFault):
        pass
    return False


def values_in(data: bytes) -> int:
    """How many values there are in the one that `data` is, with itself; raises SyntaxFault on bytes that are none."""
    try:
        return len(data) - _left(data, 0, len(data))  # each takes a byte, but for a few in arrays
    except _FAULTS as error:
        raise SyntaxFault("a value ends early") from error


def _left(data: bytes, position: int, most: int) -> int:
    """How many of so many values are left behind the one at `position`, less than 0 where it has more."""
    waiting: list[tuple[int, int | None]] = [(1, None)]  # how many, and the code of each if they are of an array
    while waiting and most >= 0:
        count, code = waiting.pop()
        if count > 1:
            waiting.append((count - 1, code))
        most -= 1
        if code is None:
            code, position = data[position], position + 1
        if code == DESCRIBED:
            waiting.append((2, None))
        elif layout := _COMPOUND.get(code):
            count, position = layout.unpack_from(data, position)[1], position + layout.size
            waiting += [(count, None)] * (count > 0)
        elif layout := _ARRAYS.get(code):
            count, position = layout.unpack_from(data, position)[1], position + layout.size
            if data[position] == DESCRIBED:
                begin, position, descriptors = position, *_behind_descriptors(data, position)
                most -= _IN_BYTE * (position - begin) + count * descriptors
            waiting += [(count, data[position])] * (count > 0)
            position += 1
        else:
            position = _WIDTHS[code >> 4](data, position)
    return most


def _behind_descriptors(data: bytes, position: int) -> tuple[int, int]:
    """Where the code of an array's elements is, and how many descriptors are in front of it."""
    count = 0
    while data[position] == DESCRIBED:
        position, count = skip(data, position + 1), count + 1
    return position, count


SHORT_COMPOUND: Final = struct.Struct(">BB")
"""The head of a compound value or an array: its size, and how many elements it has."""
LONG_COMPOUND: Final = struct.Struct(">II")

_COMPOUND: Mapping[int, struct.Struct] = {
    **dict.fromkeys((0xC0, 0xC1), SHORT_COMPOUND),
    **dict.fromkeys((0xD0, 0xD1), LONG_COMPOUND),
}
_ARRAYS: Mapping[int, struct.Struct] = {0xE0: SHORT_COMPOUND, 0xF0: LONG_COMPOUND}

# -------------------------------------------------------------- how wide, by the first four bits of a code (figure 1.2)

_LONG = struct.Struct(">I")
_Width = Callable[[bytes, int], int]


def _fixed_width(width: int) -> _Width:
    return lambda _data, position: position + width


def _short_width(data: bytes, position: int) -> int:
    return position + 1 + data[position]


def _long_width(data: bytes, position: int) -> int:
    return position + 4 + int(_LONG.unpack_from(data, position)[0])


_WIDTHS: Mapping[int, _Width] = {
    **{0x4 + power: _fixed_width(width) for power, width in enumerate((0, 1, 2, 4, 8, 16))},
    **dict.fromkeys((0xA, 0xC, 0xE), _short_width),
    **dict.fromkeys((0xB, 0xD, 0xF), _long_width),
}
