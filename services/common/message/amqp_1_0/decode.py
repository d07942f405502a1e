"""From bytes to values of AMQP 1.0 (sections 1.2 and 1.6): a constructor's code says what follows, and how long."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from services.common.errors import SyntaxFault
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.passing import (
    DEEPEST,
    DESCRIBED,
    LONG_COMPOUND,
    SHORT_COMPOUND,
    has_many,
    skip,
)
from services.common.message.bounds import LITTLE, MOST_READ

_LONG = struct.Struct(">I")


def decode(data: bytes) -> Any:  # noqa: ANN401 - whatever the peer says
    """The one value that `data` is; raises SyntaxFault."""
    value, end = decode_at(data, 0)
    if end != len(data):
        raise SyntaxFault("bytes after the last value")
    return value


def decode_at(data: bytes, position: int, depth: int = 0, most: int = MOST_READ) -> tuple[Any, int]:
    """The value at `position`, and where it ends; raises SyntaxFault, also where it has more than `most` in it."""
    if len(data) - position > LITTLE and has_many(data, (position,), most):
        raise SyntaxFault(f"more than {most} values within one")
    try:
        return _value(data, position, depth)
    except (struct.error, IndexError) as error:
        raise SyntaxFault("a value ends early") from error


def element_at(data: bytes, position: int, index: int) -> Any:  # noqa: ANN401 - whatever the peer says
    """One element of the list at `position`, None where it has fewer; those before it are passed over.

    Raises SyntaxFault.
    """
    try:
        return _element_at(data, position, index)
    except (struct.error, IndexError) as error:
        raise SyntaxFault("a list ends early") from error


def _element_at(data: bytes, position: int, index: int) -> Any:  # noqa: ANN401 - whatever the peer says
    if data[position] == _EMPTY_LIST:
        return None
    layout = _LISTS.get(data[position])
    if layout is None:
        raise SyntaxFault("no list where one is expected")
    bounds = _bounds(data, position + 1, layout)
    if index >= bounds.elements:
        return None
    at = bounds.position
    for _ in range(index):
        at = skip(data, at)
    return decode_at(data, at, 1)[0]


def _value(data: bytes, position: int, depth: int) -> tuple[Any, int]:
    code = data[position]
    if code == DESCRIBED:
        return _described(data, position + 1, depth)
    return _of(code, data, position + 1, depth)


def _of(code: int, data: bytes, position: int, depth: int) -> tuple[Any, int]:
    """The value behind a constructor of one byte."""
    if fixed := _FIXED.get(code):
        return fixed.make(*fixed.layout.unpack_from(data, position)), position + fixed.layout.size
    if text := _VARIABLE.get(code >> 4):
        start = position + text.size
        end = start + text.unpack_from(data, position)[0]
        return _TEXTS[code & 0xF](_slice(data, start, end)), end
    if read := _COMPOUND.get(code):
        if depth >= DEEPEST:
            raise SyntaxFault(f"more than {DEEPEST} values within each other")
        return read(data, position, depth + 1)
    raise SyntaxFault(f"no type has the constructor {code:#04x}")


def _described(data: bytes, position: int, depth: int) -> tuple[v.Described, int]:
    if depth >= DEEPEST:
        raise SyntaxFault(f"more than {DEEPEST} values within each other")
    descriptor, position = _value(data, position, depth + 1)
    value, position = _value(data, position, depth + 1)
    return v.Described(descriptor, value), position


def _slice(data: bytes, start: int, end: int) -> bytes:
    if end > len(data):
        raise SyntaxFault("a value ends early")
    return data[start:end]


# -------------------------------------------------------------- of fixed width (1.6.1 to 1.6.18)


class _Fixed(NamedTuple):
    layout: struct.Struct
    make: Callable[..., Any]


_SURROGATES: Final = range(0xD800, 0xE000)  # of UTF-16; they have no bytes in UTF-8


def _boolean(octet: int) -> bool:
    if octet > 1:
        raise SyntaxFault(f"a boolean is {octet:#04x}")
    return bool(octet)


def _char(code: int) -> v.Char:
    if code in _SURROGATES:
        raise SyntaxFault(f"{code:#x} is half a character")
    try:
        return v.Char(chr(code))
    except (ValueError, OverflowError) as error:
        raise SyntaxFault(f"{code:#x} is no character") from error


_ROWS: tuple[tuple[int, str, Callable[..., Any]], ...] = (
    (0x40, "", lambda: None),
    (0x41, "", lambda: True),
    (0x42, "", lambda: False),
    (0x56, "B", _boolean),
    (0x50, "B", v.UByte),
    (0x60, "H", v.UShort),
    (0x70, "I", v.UInt),
    (0x52, "B", v.UInt),
    (0x43, "", lambda: v.UInt(0)),
    (0x80, "Q", v.ULong),
    (0x53, "B", v.ULong),
    (0x44, "", lambda: v.ULong(0)),
    (0x51, "b", v.Byte),
    (0x61, "h", v.Short),
    (0x71, "i", v.Int),
    (0x54, "b", v.Int),
    (0x81, "q", v.Long),
    (0x55, "b", v.Long),
    (0x72, "f", v.Float),
    (0x82, "d", float),
    (0x74, "4s", v.Decimal),
    (0x84, "8s", v.Decimal),
    (0x94, "16s", v.Decimal),
    (0x73, "I", _char),
    (0x83, "q", v.Timestamp),
    (0x98, "16s", lambda octets: UUID(bytes=octets)),
    (0x45, "", list),
)
_FIXED = {code: _Fixed(struct.Struct(f">{layout}"), make) for code, layout, make in _ROWS}


# -------------------------------------------------------------- of variable width (1.6.19 to 1.6.21)


def _string(octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError as error:
        raise SyntaxFault("a string is not UTF-8") from error


def _symbol(octets: bytes) -> v.Symbol:
    try:
        return v.Symbol(octets.decode("ascii"))
    except UnicodeDecodeError as error:
        raise SyntaxFault("a symbol is not ASCII") from error


def _no_text(octets: bytes) -> str:
    raise SyntaxFault(f"no type has a constructor for {len(octets)} octets such as these")


_VARIABLE = {0xA: struct.Struct(">B"), 0xB: _LONG}
_TEXTS: tuple[Callable[[bytes], Any], ...] = (bytes, _string, _no_text, _symbol, *(_no_text,) * 12)


# -------------------------------------------------------------- compound and arrays (1.6.22 to 1.6.24)


class _Bounds(NamedTuple):
    """Of a compound value: where its first element begins, where it ends, and how many there are."""

    position: int
    end: int
    elements: int


def _bounds(data: bytes, position: int, layout: struct.Struct) -> _Bounds:
    size, count = layout.unpack_from(data, position)
    width = layout.size // 2
    end = position + width + size
    if end > len(data) or size < width:
        raise SyntaxFault("a compound value ends early")
    return _Bounds(position + layout.size, end, count)


def _list(data: bytes, position: int, layout: struct.Struct, depth: int) -> tuple[list[Any], int]:
    bounds = _bounds(data, position, layout)
    if bounds.elements > bounds.end - bounds.position:
        raise SyntaxFault(f"a list of {bounds.elements} elements in {bounds.end - bounds.position} bytes")
    found, position = [], bounds.position
    for _ in range(bounds.elements):
        value, position = _value(data, position, depth)
        found.append(value)
    return found, _ended(position, bounds)


def _map(data: bytes, position: int, layout: struct.Struct, depth: int) -> tuple[dict[Any, Any], int]:
    pairs, end = _list(data, position, layout, depth)
    if len(pairs) % 2:
        raise SyntaxFault("a map has a key without a value")
    keys = pairs[::2]
    _check_keys(keys)
    try:
        return dict(zip(keys, pairs[1::2], strict=True)), end
    except TypeError as error:
        raise SyntaxFault("a map has a key that is compound") from error


def _check_keys(keys: list[Any]) -> None:
    """Of numbers and UUIDs a peer can choose such as Python's dictionaries are slow with: quadratic, of thousands."""
    if len(keys) > _MOST_NUMBERS and sum(not isinstance(key, (str, bytes)) for key in keys) > _MOST_NUMBERS:
        raise SyntaxFault(f"a map with more than {_MOST_NUMBERS} keys that are neither text nor octets")


def _array(data: bytes, position: int, layout: struct.Struct, depth: int) -> tuple[v.Array, int]:
    bounds = _bounds(data, position, layout)
    start = position = bounds.position
    descriptors: list[Any] = []
    while data[position] == DESCRIBED:
        # Each is around each element: few bytes would make many objects, as deep as there are descriptors.
        if len(descriptors) == _MOST_DESCRIPTORS:
            raise SyntaxFault(f"an array whose elements have more than {_MOST_DESCRIPTORS} descriptors each")
        descriptor, position = _value(data, position + 1, depth)
        descriptors.append(descriptor)
    code, position = data[position], position + 1
    constructor = data[start:position]
    _check_array(code, bounds, position)
    found: list[Any] = []
    for _ in range(bounds.elements):
        value, position = _of(code, data, position, depth + len(descriptors))
        for descriptor in reversed(descriptors):
            value = v.Described(descriptor, value)
        found.append(value)
    return v.Array(constructor, tuple(found)), _ended(position, bounds)


def _check_array(code: int, bounds: _Bounds, position: int) -> None:
    """Elements of no width are not counted by bytes: four of these could say that there are thousands of millions."""
    room = bounds.end - position if code >> 4 != _NO_WIDTH else _MOST_OF_NO_WIDTH
    if bounds.elements > room:
        raise SyntaxFault(f"an array of {bounds.elements} elements in {bounds.end - position} bytes")


def _ended(position: int, bounds: _Bounds) -> int:
    if position != bounds.end:
        raise SyntaxFault("a compound value has another size than its elements")
    return position


_NO_WIDTH: Final = 0x4
_MOST_OF_NO_WIDTH: Final = 8  # each such array takes four bytes: little data would hold many values
_MOST_DESCRIPTORS: Final = 4
_MOST_NUMBERS: Final = 64  # keys of a map: those that are used are text
_Read = Callable[[bytes, int, int], tuple[Any, int]]


def _reader(read: Callable[[bytes, int, struct.Struct, int], tuple[Any, int]], layout: struct.Struct) -> _Read:
    return lambda data, position, depth: read(data, position, layout, depth)


_LISTS: Mapping[int, struct.Struct] = {0xC0: SHORT_COMPOUND, 0xD0: LONG_COMPOUND}
_EMPTY_LIST: Final = 0x45
_COMPOUND: Mapping[int, _Read] = {
    0xC0: _reader(_list, SHORT_COMPOUND),
    0xD0: _reader(_list, LONG_COMPOUND),
    0xC1: _reader(_map, SHORT_COMPOUND),
    0xD1: _reader(_map, LONG_COMPOUND),
    0xE0: _reader(_array, SHORT_COMPOUND),
    0xF0: _reader(_array, LONG_COMPOUND),
}
