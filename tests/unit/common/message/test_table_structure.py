"""The octets that say how a field table is built are all that it takes to know that it can be read."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import SyntaxFault
from services.common.message import field_table
from services.common.message.amqp_0_9 import FORMAT
from services.common.message.table_structure import structure

_NAMES = st.binary(max_size=3) | st.sampled_from([b"traceparent", "é".encode(), b"\xff", b"x" * 200])
_FIXED = st.one_of(
    *(
        st.binary(min_size=size, max_size=size).map(letter.__add__)
        for letter, size in [*field_table.SIZES.items(), (b"?", 1), (b"S", 3)]
    )
)
_STRINGS = st.tuples(st.sampled_from(sorted(field_table.SIZED - field_table.HOLDING)), st.binary(max_size=6))


def _sized(payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + payload


def _named(pairs: list[tuple[bytes, bytes]]) -> bytes:
    return _sized(b"".join([bytes((len(name),)) + name + value for name, value in pairs]))


_VALUES = st.recursive(
    _FIXED | _STRINGS.map(lambda said: said[0] + _sized(said[1])),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda values: b"A" + _sized(b"".join(values)))
        | st.lists(st.tuples(_NAMES, inner), max_size=3).map(lambda pairs: b"F" + _named(pairs))
    ),
    max_leaves=8,
)
_TABLES = st.lists(st.tuples(_NAMES, _VALUES), max_size=4).map(_named)
_DAMAGE = st.lists(st.tuples(st.integers(0, 1 << 10), st.integers(0, 255) | st.none()), max_size=3)


def _can_be_read(table: bytes) -> bool:
    try:
        field_table.decode(table)
    except SyntaxFault:
        return False
    return True


def _is_found_right(table: bytes) -> bool:
    try:
        structure(table)
    except SyntaxFault:
        return False
    return True


def _damaged(table: bytes, damage: Any) -> bytes:
    octets = bytearray(table)
    for at, value in damage:
        if not octets:
            break
        if value is None:
            del octets[at % len(octets)]
        else:
            octets[at % len(octets)] = value
    return bytes(octets)


@pytest.mark.fuzz
@given(_TABLES, _DAMAGE)
def test_it_agrees_with_the_decoder(table: bytes, damage: Any) -> None:
    """Of any table, whole or damaged: what the one refuses the other does."""
    data = _damaged(table, damage)
    assert _is_found_right(data) == _can_be_read(data)


@pytest.mark.fuzz
@given(st.binary(max_size=60))
def test_it_agrees_on_any_octets(data: bytes) -> None:
    """Whatever they are, behind a length that is theirs or not."""
    for table in (data, _sized(data)):
        assert _is_found_right(table) == _can_be_read(table)


@pytest.mark.fuzz
@given(_TABLES, _DAMAGE)
def test_what_is_not_among_them_may_be_anything(table: bytes, damage: Any) -> None:
    """A table can be read when one can that has the same octets there."""
    if not _can_be_read(table):
        return
    ranges = structure(table)
    free = [at for at in range(len(table)) if not any(begin <= at < end for begin, end in ranges)]
    octets = bytearray(table)
    for at, value in damage if free else ():
        octets[free[at % len(free)]] = value or 0
    assert _can_be_read(bytes(octets))
    assert ranges == structure(bytes(octets))


def test_what_they_are() -> None:
    """Sizes, names and types, in ascending ranges that do not touch a value."""
    inner = b"F" + _named([(b"in", b"I\0\0\0\5"), (b"v", b"V")])
    table = _named([(b"text", b"S" + _sized(b"abc")), (b"n", b"V"), (b"t", inner), (b"empty", b"S" + _sized(b""))])
    values = [table.index(b"abc"), table.index(b"\0\0\0\5", table.index(b"in"))]
    said = {at for begin, end in structure(table) for at in range(begin, end)}
    assert set(range(len(table))) - said == {*range(values[0], values[0] + 3), *range(values[1], values[1] + 4)}


@pytest.mark.parametrize("depth", [60, 63, 64, 65])
def test_depth(depth: int) -> None:
    """What is nested too deep for the decoder is refused."""
    table = _sized(b"")
    for _ in range(depth):
        table = _named([(b"", b"F" + table)])
    assert _is_found_right(table) == _can_be_read(table) == (depth <= field_table.MAX_DEPTH)


def test_any_octet_of_properties_whose_layout_is_known() -> None:
    """They are refused as if nothing were known: in a column that begins with what such properties were learnt from."""
    table = _named(
        [(b"order", b"S" + _sized(b"1234")), (b"t", b"F" + _named([(b"k", b"t\1")])), (b"d", b"d" + b"8" * 8)]
    )
    known = struct.pack(">H", 0xA080) + b"\4text" + table + b"\2id"
    others = [known[:-1] + bytes((octet,)) for octet in range(30)]
    for _ in range(2):
        assert len(FORMAT.attributes_of([known, *others])) == 31
    refused = 0
    for at in range(len(known)):
        for value in {0, 1, 0x46, 0x53, 0xFF, known[at] ^ 1}:
            changed = known[:at] + bytes((value,)) + known[at + 1 :]
            try:
                FORMAT.attributes(changed)
                FORMAT.headers(changed)
            except SyntaxFault:
                refused += 1
                assert len(FORMAT.attributes_of([known, changed])) == 1
            else:
                assert len(FORMAT.attributes_of([known, changed])) == 2
    assert refused > 100
