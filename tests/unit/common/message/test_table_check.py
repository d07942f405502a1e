"""Whether a field table can be read is known without decoding it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import SyntaxFault
from services.common.message import field_table
from services.common.message.table_check import check
from tests.support.table_octets import DAMAGE, TABLES, can_be_read, damaged, named, sized


def _is_found_right(table: bytes) -> bool:
    if len(table) - 4 != int.from_bytes(table[:4], "big"):
        return False  # who asks has looked at the size
    try:
        check(b"before" + table + b"behind", 10, 6 + len(table))
    except SyntaxFault:
        return False
    return True


@pytest.mark.fuzz
@given(TABLES, DAMAGE)
def test_it_agrees_with_the_decoder(table: bytes, damage: Any) -> None:
    """Of any table, whole or damaged: what the one refuses the other does."""
    data = damaged(table, damage)
    assert _is_found_right(data) == can_be_read(data)


@pytest.mark.fuzz
@given(st.binary(max_size=60))
def test_it_agrees_on_any_octets(data: bytes) -> None:
    """Whatever they are, behind a length that is theirs or not."""
    for table in (data, sized(data)):
        assert _is_found_right(table) == can_be_read(table)


_PLAIN = [
    *(letter + bytes(size) for letter, size in field_table.SIZES.items()),
    *(letter + sized(bytes(size)) for letter in (b"S", b"x") for size in (0, 1, 63, 64, 127, 128, 255)),
    *(letter + sized(b"") for letter in (b"A", b"F")),
]


@pytest.mark.parametrize("size", [0, 1, 63])
def test_usual_fields_are_passed_over(size: int) -> None:
    """However many they are, none takes a look of its own; of others each does, and what lies between them does not."""
    plain = [(b"n" * size, value) for value in _PLAIN]
    table = named(plain)
    assert check(table, 4, len(table)) == 0
    for other in (b"S" + sized(b"x" * 256), b"A" + sized(b"V"), b"F" + sized(b"\1aV")):
        table = named([*plain, (b"a", other), *plain, (b"b", other)])
        assert check(table, 4, len(table)) == 2
    table = named([*plain, ("é".encode(), b"V")])
    assert check(table, 4, len(table)) == 1


@pytest.mark.parametrize("value", _PLAIN)
def test_a_usual_field_that_is_cut_off(value: bytes) -> None:
    """Wherever it is: there is no more of it than there is of the table."""
    field = b"\4name" + value
    for size in range(1, len(field)):
        for behind in (b"", field):
            with pytest.raises(SyntaxFault):
                check(field + field[:size] + behind, 0, len(field) + size)


@pytest.mark.parametrize("depth", [60, 63, 64, 65])
def test_depth(depth: int) -> None:
    """What is nested too deep for the decoder is refused."""
    table = sized(b"")
    for _ in range(depth):
        table = named([(b"", b"F" + table)])
    assert _is_found_right(table) == can_be_read(table) == (depth <= field_table.MAX_DEPTH)
