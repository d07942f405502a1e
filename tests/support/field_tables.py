"""Any field table that a client can put on the wire, written byte by byte: no codec's limits are in it."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

_INTEGERS = {"b": (">b", 8, True), "B": (">B", 8, False), "s": (">h", 16, True), "U": (">h", 16, True),
             "u": (">H", 16, False), "I": (">i", 32, True), "i": (">I", 32, False), "l": (">q", 64, True),
             "L": (">q", 64, True), "T": (">Q", 64, False)}  # fmt: skip

_TELLING = ["!bytes", "!time", "!decimal", "!float", "!table", "!", "x-match", "x-expires", "CC", "x-death", "n"]
NAMES = st.sampled_from(_TELLING) | st.text(max_size=12) | st.just("ü" * 127)


def _integers(letter: str) -> st.SearchStrategy[bytes]:
    layout, bits, signed = _INTEGERS[letter]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    numbers = st.integers(low, high) | st.sampled_from([low, high, 0])
    return numbers.map(lambda number: letter.encode() + struct.pack(layout, number))


def sized(letter: bytes, payload: bytes) -> bytes:
    """A field of a type that says its length."""
    return letter + struct.pack(">I", len(payload)) + payload


def _table(fields: dict[str, bytes]) -> bytes:
    return b"".join(bytes((len(name.encode()),)) + name.encode() + value for name, value in fields.items())


_LEAVES = st.one_of(
    *map(_integers, _INTEGERS),
    st.sampled_from([b"V", b"t\x00", b"t\x01", b"t\x07"]),
    st.floats(width=32).map(lambda number: b"f" + struct.pack(">f", number)),
    st.floats().map(lambda number: b"d" + struct.pack(">d", number)),
    st.builds(lambda scale, digits: b"D" + struct.pack(">Bi", scale, digits),
              st.integers(0, 255), st.integers(-(1 << 31), (1 << 31) - 1)),
    st.text(max_size=20).map(lambda text: sized(b"S", text.encode())),
    st.binary(max_size=20).map(lambda raw: sized(b"S", raw)),
    st.binary(max_size=20).map(lambda raw: sized(b"x", raw)),
    st.sampled_from([b"AAAA", b"x", b"nan", b"NaN", b"sNaN", b"1.5", b"inf"]).map(lambda text: sized(b"S", text)),
)  # fmt: skip
VALUES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda values: sized(b"A", b"".join(values)))
        | st.dictionaries(NAMES, inner, max_size=3).map(lambda fields: sized(b"F", _table(fields)))
    ),
    max_leaves=12,
)
TABLES = st.dictionaries(NAMES, VALUES, max_size=4).map(lambda fields: sized(b"", _table(fields)))
"""Whole tables, their length first."""


def nested(depth: int, *, in_arrays: bool = False) -> bytes:
    """A table with tables, or arrays, in each other."""
    inner = b"V"
    for _ in range(depth):
        inner = sized(b"A", inner) if in_arrays else sized(b"F", b"\x01n" + inner)
    return sized(b"", b"\x01n" + inner)


def typed(value: Any) -> Any:
    """Equal exactly for values that are equal and of equal types, however deep; one NaN is as good as another."""
    match value:
        case dict():
            return "table", {name: typed(each) for name, each in value.items()}
        case list():
            return "array", [typed(each) for each in value]
        case float():
            return "float", repr(value)
        case Decimal():
            return "decimal", value.as_tuple()
        case datetime():
            return "time", value.astimezone(UTC)
    return type(value), value
