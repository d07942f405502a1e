"""What was read or written lately is known both ways, and what is not is nobody else's."""

from __future__ import annotations

import gc

from services.common.message import facts_known, facts_table
from services.common.message.facts import Facts
from services.common.message.facts_known import KnownFacts


def _some(name: str, count: int) -> list[Facts]:
    return [Facts("/", "e", f"{name}-{number}", "f") for number in range(count)]


def test_what_is_written_is_known_when_it_comes_back() -> None:
    """It is the very object that was written, and what was read is written as the very bytes that came."""
    table = _some("written", 20)
    raw = list(facts_table.written(table))
    back = facts_table.read([bytes(bytearray(each)) for each in raw])
    assert all(one is other for one, other in zip(back, table, strict=True))
    read = facts_table.read([each.replace(b"written", b"another") for each in raw])
    assert list(facts_table.written(read)) == [each.replace(b"written", b"another") for each in raw]


def test_some_are_known() -> None:
    """Each is written, and read, as it would be alone."""
    table = _some("known", 40)
    some = list(facts_table.written(table[::2]))
    raw = list(facts_table.written(table))
    assert raw[::2] == some
    assert facts_table.read(raw) == table
    facts_table.read([each.replace(b"known", b"other") for each in raw[::3]])
    assert [facts.routing_key for facts in facts_table.read([each.replace(b"known", b"other") for each in raw])] == [
        f"other-{number}" for number in range(40)
    ]


def test_it_begins_again() -> None:
    """It holds so many, and no object that came to be since passes for one that it held."""
    known = KnownFacts()
    for turn in range(facts_known._MOST // 100 + 2):
        table = _some(f"turn-{turn}", 100)
        known.add([facts.routing_key.encode() for facts in table], table)
        del table
        gc.collect(0)
        assert known.raw(_some("fresh", 200)) == [None] * 200
    assert known.facts([b"turn-0-0"]) == [None]
    last = f"turn-{turn}-99"
    assert known.facts([last.encode()]) == [Facts("/", "e", last, "f")]


def test_what_was_noted_is_not_new() -> None:
    """As what was written; how it is written is not known by that."""
    known, table = KnownFacts(), _some("noted", 10)
    assert known.are_new(table)
    known.note(table[:1])
    assert not known.are_new(table)
    assert not any(known.raw(table))
    known.add([b"raw"], table[:1])
    assert known.raw(table[:2]) == [b"raw", None]
    long = _some("k" * 1000, 10)
    known.note(long)
    assert known.are_new(long)


def test_what_was_noted_is_written() -> None:
    """With others, as each would be alone."""
    table = _some("noted and written", 20)
    facts_table.note(table[::2])
    raw = list(facts_table.written(table))
    assert facts_table.read([bytes(bytearray(each)) for each in raw]) == table


def test_long_ones_are_not_kept() -> None:
    """So many would fill the memory."""
    known, table = KnownFacts(), _some("k" * 1000, 10)
    known.add([facts.routing_key.encode() for facts in table], table)
    assert known.raw(table) == [None] * 10
