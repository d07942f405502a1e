"""The wire types of method arguments (section 4.2.5). Consecutive bits share octets, lowest bit first."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from services.common.errors import SyntaxFault
from services.common.identity_enum import IdentityEnum
from services.common.message import field_table


class Wire(IdentityEnum):
    BIT = "bit"
    OCTET = "octet"
    SHORT = "short"
    LONG = "long"
    LONG_LONG = "longlong"
    SHORT_STRING = "shortstr"
    LONG_STRING = "longstr"
    TABLE = "table"
    TABLE_IF_THERE = "table, or nothing"


Bit = Annotated[bool, Wire.BIT]
Octet = Annotated[int, Wire.OCTET]
Short = Annotated[int, Wire.SHORT]
Long = Annotated[int, Wire.LONG]
LongLong = Annotated[int, Wire.LONG_LONG]
ShortString = Annotated[str, Wire.SHORT_STRING]
LongString = Annotated[bytes, Wire.LONG_STRING]
Table = Annotated[Mapping[str, Any], Wire.TABLE]
TableIfThere = Annotated[Mapping[str, Any], Wire.TABLE_IF_THERE]  # the last argument only

_INTEGERS = {
    Wire.OCTET: struct.Struct(">B"),
    Wire.SHORT: struct.Struct(">H"),
    Wire.LONG: struct.Struct(">I"),
    Wire.LONG_LONG: struct.Struct(">Q"),
}

_Reader = Callable[[bytes, int], tuple[Any, int]]
_Writer = Callable[[Any], bytes]


def read(data: bytes, position: int, wires: tuple[Wire, ...]) -> list[Any]:
    """The values from `position` to the end of `data`; raises SyntaxFault when they are not exactly `wires`."""
    values: list[Any] = []
    bits = 0  # of the octet before `position` that have been read
    try:
        for wire in wires:
            if wire is Wire.BIT:
                position += bits % 8 == 0
                values.append(bool(data[position - 1] >> bits % 8 & 1))
                bits += 1
            else:
                bits = 0
                value, position = _READERS[wire](data, position)
                values.append(value)
    except (struct.error, IndexError) as error:
        raise SyntaxFault("the arguments end early") from error
    if position != len(data):
        raise SyntaxFault("bytes after the last argument")
    return values


def write(values: Sequence[Any], wires: tuple[Wire, ...]) -> bytes:
    """The bytes of `values`; raises SyntaxFault for one that does not fit its wire type."""
    out = bytearray()
    bits = 0
    try:
        for value, wire in zip(values, wires, strict=True):
            if wire is not Wire.BIT:
                bits = 0
                out += _WRITERS[wire](value)
                continue
            if bits % 8 == 0:
                out.append(0)
            out[-1] |= bool(value) << bits % 8
            bits += 1
    except (struct.error, UnicodeEncodeError) as error:
        raise SyntaxFault(f"an argument does not fit: {error}") from error
    return bytes(out)


def _integer_reader(layout: struct.Struct) -> _Reader:
    def read_integer(data: bytes, position: int) -> tuple[int, int]:
        return layout.unpack_from(data, position)[0], position + layout.size

    return read_integer


def _read_short_string(data: bytes, position: int) -> tuple[str, int]:
    start = position + 1
    end = start + data[position]
    if end > len(data):
        raise SyntaxFault("a short string ends early")
    try:
        return data[start:end].decode(), end
    except UnicodeDecodeError as error:
        raise SyntaxFault("a short string is not UTF-8") from error


def _read_long_string(data: bytes, position: int) -> tuple[bytes, int]:
    (length,) = struct.unpack_from(">I", data, position)
    start = position + 4
    end = start + length
    if end > len(data):
        raise SyntaxFault("a long string ends early")
    return data[start:end], end


def _read_table_if_there(data: bytes, position: int) -> tuple[Mapping[str, Any], int]:
    return ({}, position) if position == len(data) else field_table.decode_at(data, position)


def short_string(value: str) -> bytes:
    """Raises SyntaxFault when it is too long."""
    raw = value.encode()
    return short_length(len(raw)) + raw


def short_length(size: int) -> bytes:
    """The octet in front of a short string of so many octets. Raises SyntaxFault when it is too long."""
    if size > 255:
        raise SyntaxFault("a short string is longer than 255 bytes")
    return bytes((size,))


_READERS: dict[Wire, _Reader] = {
    **{wire: _integer_reader(layout) for wire, layout in _INTEGERS.items()},
    Wire.SHORT_STRING: _read_short_string,
    Wire.LONG_STRING: _read_long_string,
    Wire.TABLE: field_table.decode_at,
    Wire.TABLE_IF_THERE: _read_table_if_there,
}
_WRITERS: dict[Wire, _Writer] = {
    **{wire: layout.pack for wire, layout in _INTEGERS.items()},
    Wire.SHORT_STRING: short_string,
    Wire.LONG_STRING: lambda value: struct.pack(">I", len(value)) + value,
    Wire.TABLE: field_table.encode,
    Wire.TABLE_IF_THERE: field_table.encode,
}
