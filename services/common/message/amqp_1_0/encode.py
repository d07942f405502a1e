"""From values of AMQP 1.0 to bytes (section 1.6), each in the shortest way that there is."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from services.common.errors import SyntaxFault
from services.common.message.amqp_1_0 import values as v

_SHORT = 256  # sizes and counts below take one byte


def encode(value: Any) -> bytes:  # noqa: ANN401 - any value
    """Raises SyntaxFault for what is no value, or does not fit its type."""
    write = _WRITERS.get(type(value))
    if write is None:
        raise SyntaxFault(f"{type(value).__name__} is no type of AMQP's")
    try:
        return write(value)
    except (struct.error, UnicodeEncodeError, OverflowError) as error:
        raise SyntaxFault(f"{value!r} does not fit its type: {error}") from error


def encode_list(parts: Iterable[bytes]) -> bytes:
    """A list of values that are encoded already."""
    elements = list(parts)
    return _compound(0xC0, len(elements), b"".join(elements)) if elements else b"\x45"


def encode_binary(octets: bytes) -> bytes:
    """A binary of any kind of bytes."""
    return _sized(0xA0, octets)


def _sized(short_code: int, octets: bytes) -> bytes:
    """The codes of the long kinds stand 16 behind those of the short ones."""
    if len(octets) < _SHORT:
        return bytes((short_code, len(octets))) + octets
    return struct.pack(">BI", short_code + 0x10, len(octets)) + octets


def _compound(short_code: int, count: int, elements: bytes) -> bytes:
    if len(elements) + 1 < _SHORT and count < _SHORT:
        return bytes((short_code, len(elements) + 1, count)) + elements
    return struct.pack(">BII", short_code + 0x10, len(elements) + 4, count) + elements


def _whole(code: int, layout: str) -> Callable[[Any], bytes]:
    pack = struct.Struct(f">B{layout}").pack
    return lambda value: pack(code, value)


def _unsigned(zero: int, small: int, code: int, layout: str) -> Callable[[int], bytes]:
    pack = struct.Struct(f">B{layout}").pack

    def write(value: int) -> bytes:
        if 0 < value < _SHORT:
            return bytes((small, value))
        return pack(code, value) if value else bytes((zero,))

    return write


def _signed(small: int, code: int, layout: str) -> Callable[[int], bytes]:
    pack, pack_small = struct.Struct(f">B{layout}").pack, struct.Struct(">Bb").pack
    return lambda value: pack_small(small, value) if -128 <= value < 128 else pack(code, value)


def _decimal(value: v.Decimal) -> bytes:
    codes = {4: b"\x74", 8: b"\x84", 16: b"\x94"}
    if len(value) not in codes:
        raise SyntaxFault(f"a decimal of {len(value)} bytes")
    return codes[len(value)] + value


def _map(value: dict[Any, Any]) -> bytes:
    return _compound(0xC1, 2 * len(value), _octets(value))


def _described(value: v.Described) -> bytes:
    return b"\x00" + encode(value.descriptor) + encode(value.value)


def _array(value: v.Array) -> bytes:
    """Those that were read keep their constructor; `array_of` makes others."""
    return _compound(0xE0, len(value.values), _octets(value))


def array_of(kind: type[Any], values: Iterable[Any]) -> v.Array:
    """Of strings, symbols or binaries."""
    return v.Array(bytes((_LONG_TEXTS[kind],)), tuple(values))


def _element(code: int, value: Any) -> bytes:  # noqa: ANN401 - any value
    """Without its constructor, which the array says for all."""
    while isinstance(value, v.Described):
        value = value.value
    if fixed := _ELEMENTS.get(code):
        return fixed(value)
    octets = _octets(value)
    if code >> 4 in _COUNTS:
        octets = _size(code, _count(value)) + octets
    return _size(code, len(octets)) + octets


def _size(code: int, number: int) -> bytes:
    """A size, or a count of elements: one byte where the code's fourth bit from above says so, else four."""
    return number.to_bytes(4 if code & 0x10 else 1, "big")


def _count(value: Any) -> int:  # noqa: ANN401 - any value
    return 2 * len(value) if isinstance(value, dict) else len(value.values if isinstance(value, v.Array) else value)


def _octets(value: Any) -> bytes:  # noqa: ANN401 - any value
    """What stands behind the size, and the count if there is one."""
    match value:
        case v.Symbol():
            return value.encode("ascii")
        case str():
            return value.encode()
        case bytes():
            return value
        case v.Array():
            return value.constructor + b"".join(_element(value.constructor[-1], each) for each in value.values)
        case list() | tuple():
            return b"".join(map(encode, value))
        case dict():
            return b"".join(encode(each) for pair in value.items() for each in pair)
    raise SyntaxFault(f"{type(value).__name__} in an array of what has a size")


def _packer(layout: str) -> Callable[[Any], bytes]:
    return struct.Struct(f">{layout}").pack


_LONG_TEXTS: dict[type[Any], int] = {bytes: 0xB0, str: 0xB1, v.Symbol: 0xB3}
_COUNTS = frozenset({0xC, 0xD, 0xE, 0xF})
_ELEMENTS: dict[int, Callable[[Any], bytes]] = {
    **dict.fromkeys((0x40, 0x41, 0x42, 0x43, 0x44, 0x45), lambda _value: b""),
    **{
        code: _packer(layout)
        for layout, codes in {
            "B": (0x50, 0x52, 0x53, 0x56),
            "H": (0x60,),
            "I": (0x70,),
            "Q": (0x80,),
            "b": (0x51, 0x54, 0x55),
            "h": (0x61,),
            "i": (0x71,),
            "q": (0x81, 0x83),
            "f": (0x72,),
            "d": (0x82,),
            "4s": (0x74,),
            "8s": (0x84,),
            "16s": (0x94,),
        }.items()
        for code in codes
    },
    0x73: lambda value: struct.pack(">I", ord(value)),
    0x98: lambda value: value.bytes,
}

_WRITERS: Mapping[type[Any], Callable[[Any], bytes]] = {
    type(None): lambda _value: b"\x40",
    bool: lambda value: b"\x41" if value else b"\x42",
    v.UByte: _whole(0x50, "B"),
    v.UShort: _whole(0x60, "H"),
    v.UInt: _unsigned(0x43, 0x52, 0x70, "I"),
    v.ULong: _unsigned(0x44, 0x53, 0x80, "Q"),
    v.Byte: _whole(0x51, "b"),
    v.Short: _whole(0x61, "h"),
    v.Int: _signed(0x54, 0x71, "i"),
    v.Long: _signed(0x55, 0x81, "q"),
    int: _signed(0x55, 0x81, "q"),
    v.Timestamp: _whole(0x83, "q"),
    v.Float: _whole(0x72, "f"),
    float: _whole(0x82, "d"),
    v.Decimal: _decimal,
    v.Char: lambda value: struct.pack(">BI", 0x73, ord(value)),
    UUID: lambda value: b"\x98" + value.bytes,
    bytes: encode_binary,
    str: lambda value: _sized(0xA1, value.encode()),
    v.Symbol: lambda value: _sized(0xA3, value.encode("ascii")),
    list: lambda value: encode_list(map(encode, value)),
    tuple: lambda value: encode_list(map(encode, value)),
    dict: _map,
    v.Described: _described,
    v.Array: _array,
}
