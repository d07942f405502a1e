"""Field tables (0-9-1 section 4.2.5.5) in the dialect that RabbitMQ and its clients speak.

Decoding is liberal: every type letter that is in use. Encoding writes what RabbitMQ writes. Strings that are not UTF-8
decode to bytes, timestamps that no calendar has to integers, so that no table of a careless client is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from services.common.errors import SyntaxFault
from services.common.message.bounds import LITTLE, MOST_READ

MAX_DEPTH = 64  # tables in tables; a bound for the interpreter's stack

_Decoder = Callable[[bytes, int, int], tuple[Any, int]]
_Encoder = Callable[[Any, int], bytes]

_LENGTH = struct.Struct(">I")
EMPTY = _LENGTH.pack(0)


def decode(data: bytes, most: int = MOST_READ) -> dict[str, Any]:
    """The table in `data`, its length first; raises SyntaxFault unless it fills `data` with `most` values or fewer."""
    table, end = decode_at(data, 0, most)
    if end != len(data):
        raise SyntaxFault("bytes after the end of a field table")
    return table


def decode_at(data: bytes, position: int, most: int = MOST_READ) -> tuple[dict[str, Any], int]:
    """The table that begins at `position`, and where it ends.

    Raises SyntaxFault on bytes that are none, and where there are more than `most` values in it.
    """
    _check(data, position, most)
    try:
        return _table(data, position, MAX_DEPTH)
    except (struct.error, IndexError) as error:
        raise SyntaxFault("a field table ends early") from error


class Entry(NamedTuple):
    """Where an entry of a table begins and ends, and where its value does, with its type."""

    name: bytes
    start: int
    value: int
    end: int


def entries(data: bytes, names: AbstractSet[bytes], most: int = MOST_READ) -> list[Entry]:
    """The entries of the table in `data` that have one of `names`, in their order and repeated ones too.

    Values are passed over, not decoded. Raises SyntaxFault on bytes that are no table, and where there are more than
    `most` values in it.
    """
    _check(data, 0, most)
    try:
        return _entries(data, names)
    except (struct.error, IndexError) as error:
        raise SyntaxFault("a field table ends early") from error


def value(data: bytes, entry: Entry) -> Any:  # noqa: ANN401 - as its type says
    """The value of an entry of the table in `data`; raises SyntaxFault on bytes that are none."""
    try:
        return _value(data, entry.value, MAX_DEPTH)[0]
    except (struct.error, IndexError) as error:
        raise SyntaxFault("a field table ends early") from error


def find(data: bytes, names: AbstractSet[bytes], most: int = MOST_READ) -> list[tuple[bytes, Any]]:
    """Names and values of the `entries`; raises SyntaxFault as they do."""
    return [(entry.name, value(data, entry)) for entry in entries(data, names, most)]


def without(data: bytes, hidden: Iterable[Entry]) -> bytes:
    """The table in `data` but for some entries, in their order; the rest stays as it is, byte for byte."""
    parts, at = [], _LENGTH.size
    for entry in hidden:
        parts.append(data[at : entry.start])
        at = entry.end
    return _with_length(b"".join([*parts, data[at:]]))


def joined(data: bytes, names: AbstractSet[bytes], other: bytes) -> bytes:
    """The table in `data` with all of `other` in place of its own entries of some names; nothing is decoded.

    Raises SyntaxFault on bytes that are no table, where it has to look for such names.
    """
    hidden = entries(data, names) if any(name in data for name in names) else ()
    return _with_length(without(data, hidden)[_LENGTH.size :] + other[_LENGTH.size :])


def has_many(data: bytes, position: int, most: int) -> bool:
    """Whether the table at `position` has more than so many values, those of tables and arrays in it too.

    It looks no further than that. Where something is no value whoever reads it comes no further either.
    """
    try:
        return _has_many(data, position, most)
    except (struct.error, IndexError, SyntaxFault):
        return False


def encode(table: Mapping[str, Any]) -> bytes:
    """`table` with its length first; raises SyntaxFault for values that no field can hold."""
    try:
        return _encode_table(table, MAX_DEPTH)
    except UnicodeEncodeError as error:
        raise SyntaxFault("a field's text cannot be written as UTF-8") from error


def tellable(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those that fields can hold: other protocols have longer names, and larger numbers."""
    if can_be_told(table):
        return table
    return {name: value for name, value in table.items() if can_be_told({name: value})}


def can_be_told(table: Mapping[str, Any]) -> bool:
    """Whether fields can hold all of it."""
    try:
        encode(table)
    except SyntaxFault:
        return False
    return True


# ------------------------------------------------------------------ counting


def _check(data: bytes, position: int, most: int = MOST_READ) -> None:
    if len(data) - position > LITTLE and has_many(data, position, most):
        raise SyntaxFault(f"more than {most} fields in a table")


def _has_many(data: bytes, position: int, most: int) -> bool:
    position, end = sized(data, position)
    around: list[tuple[int, bool]] = [(end, True)]  # where each ends, and whether what is in it has names
    for _ in range(most):
        while position >= around[-1][0]:
            around.pop()
            if not around:
                return False
        if around[-1][1]:
            position += 1 + data[position]
        letter = data[position : position + 1]
        if letter in HOLDING:
            position, end = sized(data, position + 1)
            around.append((end, letter == b"F"))
        else:
            position = _after_value(data, position)
    return any(position < end for end, _ in around)


# ------------------------------------------------------------------ decoding


def sized(data: bytes, position: int) -> tuple[int, int]:
    """Where what has its size at `position` begins and ends; raises SyntaxFault, or struct.error."""
    (length,) = _LENGTH.unpack_from(data, position)
    start = position + 4
    end = start + length
    if end > len(data):
        raise SyntaxFault("a field is longer than what holds it")
    return start, end


def _table(data: bytes, position: int, depth: int) -> tuple[dict[str, Any], int]:
    position, end = sized(data, position)
    table: dict[str, Any] = {}
    while position < end:
        start = position + 1
        position = start + data[position]
        name = name_of(data[start:position])
        table[name], position = _value(data, position, depth)
    if position != end:
        raise SyntaxFault("a field reaches over the end of its table")
    return table, end


def _entries(data: bytes, names: AbstractSet[bytes]) -> list[Entry]:
    position, end = sized(data, 0)
    found: list[Entry] = []
    while position < end:
        start = position
        value_at = start + 1 + data[start]
        name = data[start + 1 : value_at]
        position = _after_value(data, value_at)
        if name in names:
            found.append(Entry(name, start, value_at, position))
    if position != end:
        raise SyntaxFault("a field reaches over the end of its table")
    return found


def _after_value(data: bytes, position: int) -> int:
    letter = data[position : position + 1]
    if letter in SIZED:
        return sized(data, position + 1)[1]
    size = SIZES.get(letter)
    if size is None:
        raise SyntaxFault(f"unknown field type {letter!r}")
    return position + 1 + size


def name_of(data: bytes) -> str:
    """That of a field; raises SyntaxFault."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SyntaxFault("a field's name is not UTF-8") from error


def _value(data: bytes, position: int, depth: int) -> tuple[Any, int]:
    decoder = _DECODERS.get(data[position])
    if decoder is None:
        raise SyntaxFault(f"unknown field type {data[position]:#04x}")
    if not depth:
        raise SyntaxFault(f"field tables nested deeper than {MAX_DEPTH}")
    return decoder(data, position + 1, depth - 1)


def _array(data: bytes, position: int, depth: int) -> tuple[list[Any], int]:
    position, end = sized(data, position)
    values: list[Any] = []
    while position < end:
        value, position = _value(data, position, depth)
        values.append(value)
    if position != end:
        raise SyntaxFault("a field reaches over the end of its array")
    return values, end


def _long_string(data: bytes, position: int, _depth: int) -> tuple[str | bytes, int]:
    start, end = sized(data, position)
    raw = data[start:end]
    try:
        return raw.decode(), end
    except UnicodeDecodeError:
        return raw, end


def _raw(data: bytes, position: int, _depth: int) -> tuple[bytes, int]:
    start, end = sized(data, position)
    return data[start:end], end


def _decimal(data: bytes, position: int, _depth: int) -> tuple[Decimal, int]:
    scale, digits = struct.unpack_from(">Bi", data, position)
    return Decimal(digits).scaleb(-scale), position + 5


def _timestamp(data: bytes, position: int, _depth: int) -> tuple[datetime | int, int]:
    (seconds,) = struct.unpack_from(">Q", data, position)
    try:
        return datetime.fromtimestamp(seconds, UTC), position + 8
    except (ValueError, OverflowError, OSError):
        return seconds, position + 8


def _void(_data: bytes, position: int, _depth: int) -> tuple[None, int]:
    return None, position


def _fixed(layout: str) -> _Decoder:
    unpack, size = struct.Struct(layout).unpack_from, struct.calcsize(layout)

    def read(data: bytes, position: int, _depth: int) -> tuple[Any, int]:
        return unpack(data, position)[0], position + size

    return read


_DECODERS: dict[int, _Decoder] = {
    ord(letter): decoder
    for letter, decoder in {
        "t": _fixed(">?"),
        "b": _fixed(">b"),
        "B": _fixed(">B"),
        "s": _fixed(">h"),
        "U": _fixed(">h"),
        "u": _fixed(">H"),
        "I": _fixed(">i"),
        "i": _fixed(">I"),
        "l": _fixed(">q"),
        "L": _fixed(">q"),
        "f": _fixed(">f"),
        "d": _fixed(">d"),
        "D": _decimal,
        "S": _long_string,
        "c": _long_string,  # this and the next two are those of old clients of Qpid
        "C": _long_string,
        "k": _fixed(">c"),
        "x": _raw,
        "A": _array,
        "T": _timestamp,
        "F": _table,
        "V": _void,
    }.items()
}

# By type: how many octets a value has, or that its size comes first; what has that and holds values of its own.
SIZES = {
    letter.encode(): size
    for letters, size in (("V", 0), ("tbBk", 1), ("sUu", 2), ("Iif", 4), ("D", 5), ("lLdT", 8))
    for letter in letters
}
HOLDING = frozenset((b"A", b"F"))
SIZED = frozenset((b"S", b"c", b"C", b"x")) | HOLDING


# ------------------------------------------------------------------ encoding


def _encode_table(table: Mapping[str, Any], depth: int) -> bytes:
    parts = [_encode_name(name) + _encode_value(value, depth) for name, value in table.items()]
    return _with_length(b"".join(parts))


def _encode_name(name: str) -> bytes:
    raw = name.encode()
    if len(raw) > 255:
        raise SyntaxFault("a field's name is longer than 255 bytes")
    return bytes((len(raw),)) + raw


def _encode_value(value: object, depth: int) -> bytes:
    if not depth:
        raise SyntaxFault(f"field tables nested deeper than {MAX_DEPTH}")
    for kind, encoder in _ENCODERS:
        if isinstance(value, kind):
            return encoder(value, depth - 1)
    raise SyntaxFault(f"no field can hold a {type(value).__name__}")


def _with_length(raw: bytes) -> bytes:
    return _LENGTH.pack(len(raw)) + raw


def _encode_integer(value: int, _depth: int) -> bytes:
    if -(1 << 31) <= value < 1 << 31:
        return struct.pack(">ci", b"I", value)
    if -(1 << 63) <= value < 1 << 63:
        return struct.pack(">cq", b"l", value)
    if 0 <= value < 1 << 64:
        # Only a timestamp that no calendar has is read as one of these.
        return struct.pack(">cQ", b"T", value)
    raise SyntaxFault(f"{value} does not fit in 64 bits")


def _encode_decimal(value: Decimal, _depth: int) -> bytes:
    _, _, exponent = value.as_tuple()
    scale = max(0, -exponent) if isinstance(exponent, int) else -1
    # Decided by the magnitude, so that no huge power is ever computed.
    if not 0 <= scale <= 255 or value.adjusted() + scale > 10:
        raise SyntaxFault(f"{value} is no decimal field")
    digits = int(value.scaleb(scale))
    if not -(1 << 31) <= digits < 1 << 31:
        raise SyntaxFault(f"{value} has too many digits for a decimal field")
    return struct.pack(">cBi", b"D", scale, digits)


def _encode_timestamp(value: datetime, _depth: int) -> bytes:
    seconds = int(value.timestamp())
    if seconds < 0:
        raise SyntaxFault("a timestamp field holds nothing before 1970")
    return struct.pack(">cQ", b"T", seconds)


def _encode_array(values: list[Any] | tuple[Any, ...], depth: int) -> bytes:
    return b"A" + _with_length(b"".join([_encode_value(value, depth) for value in values]))


# In this order: a bool is an int as well.
_ENCODERS: tuple[tuple[type | tuple[type, ...], _Encoder], ...] = (
    (str, lambda value, _: b"S" + _with_length(value.encode())),
    (bool, lambda value, _: b"t\x01" if value else b"t\x00"),
    (int, _encode_integer),
    (float, lambda value, _: struct.pack(">cd", b"d", value)),
    ((bytes, bytearray, memoryview), lambda value, _: b"x" + _with_length(bytes(value))),
    (type(None), lambda _value, _: b"V"),
    (Mapping, lambda value, depth: b"F" + _encode_table(value, depth)),
    ((list, tuple), _encode_array),
    (datetime, _encode_timestamp),
    (Decimal, _encode_decimal),
)
