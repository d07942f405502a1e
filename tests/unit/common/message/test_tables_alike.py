"""A table is known to be readable by the octets that say how it is built, as one before it could be read."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import SyntaxFault
from services.common.message import tables_alike
from services.common.message.amqp_0_9 import FORMAT
from services.common.message.tables_alike import TablesAlike, built
from tests.support.table_octets import DAMAGE, TABLES, can_be_read, damaged, named, sized


def _built(table: bytes) -> list[tuple[int, int]]:
    return [(0, 4), *built(table, 4, len(table))]


@pytest.mark.fuzz
@given(TABLES, DAMAGE)
def test_what_is_not_among_them_may_be_anything(table: bytes, damage: Any) -> None:
    """A table can be read when one can that has the same octets there."""
    if not can_be_read(table):
        return
    ranges = _built(table)
    free = [at for at in range(len(table)) if not any(begin <= at < end for begin, end in ranges)]
    octets = bytearray(table)
    for at, value in damage if free else ():
        octets[free[at % len(free)]] = value or 0
    assert can_be_read(bytes(octets))
    assert ranges == _built(bytes(octets))


def test_what_they_are() -> None:
    """Sizes, names and types, in ascending ranges that do not touch a value."""
    inner = b"F" + named([(b"in", b"I\0\0\0\5"), (b"v", b"V")])
    table = named([(b"text", b"S" + sized(b"abc")), (b"n", b"V"), (b"t", inner), (b"empty", b"S" + sized(b""))])
    values = [table.index(b"abc"), table.index(b"\0\0\0\5", table.index(b"in"))]
    ranges = _built(table)
    said = {at for begin, end in ranges for at in range(begin, end)}
    assert set(range(len(table))) - said == {*range(values[0], values[0] + 3), *range(values[1], values[1] + 4)}
    assert ranges == sorted(ranges)


@pytest.mark.fuzz
@given(st.lists(TABLES.filter(can_be_read), min_size=1, max_size=3), st.lists(DAMAGE, max_size=30))
def test_a_table_like_one_before_is_refused_as_if_nothing_were_known(tables: list[bytes], damages: list[Any]) -> None:
    """Whatever came at its place: those of the same length, several of one, then of another, some of them damaged."""
    size = len(tables[0])
    alike = TablesAlike(4, size)
    for index, damage in enumerate(damages):
        table = tables[index // 5 % len(tables)][:size].ljust(size, b"\0")
        changed = (table[:4] + damaged(table[4:], damage))[:size].ljust(size, b"\0") if index % 5 > 2 else table
        assert _is_read(alike, changed) == can_be_read(sized(changed[4:]))


def _is_read(alike: TablesAlike, table: bytes) -> bool:
    try:
        alike.check(table)
    except SyntaxFault:
        return False
    return True


def _table(number: int, *, differ: bool) -> bytes:
    """Of one length, and built in one way unless they `differ`."""
    size = number % 50 if differ else 25
    return named([(b"a", b"S" + sized(b"a" * size)), (b"b", b"S" + sized(b"b" * (50 - size)))])


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Those that it was not enough to look at."""
    tables = list[bytes]()
    monkeypatch.setattr(tables_alike, "check", lambda data, *_: tables.append(data) or 0)
    return tables


def test_tables_that_are_built_alike_are_checked_twice(checked: list[bytes]) -> None:
    """The first may be the only one; the second is learnt."""
    alike = TablesAlike(4, len(_table(0, differ=False)))
    for number in range(1000):
        alike.check(_table(number, differ=False))
    assert len(checked) == 2


def test_few_tables_are_learnt_where_each_is_built_in_another_way(
    checked: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who learns them all does more than who checks them."""
    learnt = list[bytes]()

    def learn(data: bytes, begin: int, end: int) -> list[tuple[int, int]]:
        learnt.append(data)
        return built(data, begin, end)

    monkeypatch.setattr(tables_alike, "built", learn)
    alike = TablesAlike(4, len(_table(0, differ=True)))
    for number in range(1000):
        alike.check(_table(number, differ=True))
    assert len(checked) == 1000
    assert 10 < len(learnt) < 20
    for _ in range(100):
        alike.check(_table(7, differ=True))
    assert len(checked) < 1080


def test_any_octet_of_properties_whose_layout_is_known() -> None:
    """They are refused as if nothing were known: in a column that begins with what such properties were learnt from."""
    table = named([(b"order", b"S" + sized(b"1234")), (b"t", b"F" + named([(b"k", b"t\1")])), (b"d", b"d" + b"8" * 8)])
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
