"""Field tables in octets (0-9-1 section 4.2.5.5), of any types and names, whole or damaged."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import strategies as st

from services.common.errors import SyntaxFault
from services.common.message import field_table

_NAMES = st.binary(max_size=3) | st.sampled_from([b"traceparent", "é".encode(), b"\xff", b"x" * 200])
_FIXED = st.one_of(
    *(
        st.binary(min_size=size, max_size=size).map(letter.__add__)
        for letter, size in [*field_table.SIZES.items(), (b"?", 1), (b"S", 3)]
    )
)
_STRINGS = st.tuples(st.sampled_from(sorted(field_table.SIZED - field_table.HOLDING)), st.binary(max_size=6))


def sized(payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + payload


def named(pairs: list[tuple[bytes, bytes]]) -> bytes:
    return sized(b"".join([bytes((len(name),)) + name + value for name, value in pairs]))


_VALUES = st.recursive(
    _FIXED | _STRINGS.map(lambda said: said[0] + sized(said[1])),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda values: b"A" + sized(b"".join(values)))
        | st.lists(st.tuples(_NAMES, inner), max_size=3).map(lambda pairs: b"F" + named(pairs))
    ),
    max_leaves=8,
)
TABLES = st.lists(st.tuples(_NAMES, _VALUES), max_size=4).map(named)
DAMAGE = st.lists(st.tuples(st.integers(0, 1 << 10), st.integers(0, 255) | st.none()), max_size=3)


def damaged(table: bytes, damage: Any) -> bytes:
    octets = bytearray(table)
    for at, value in damage:
        if not octets:
            break
        if value is None:
            del octets[at % len(octets)]
        else:
            octets[at % len(octets)] = value
    return bytes(octets)


def can_be_read(table: bytes) -> bool:
    try:
        field_table.decode(table)
    except SyntaxFault:
        return False
    return True
