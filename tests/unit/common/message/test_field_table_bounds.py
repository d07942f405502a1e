"""Who reads headers of 0-9 does so in one go, while all others wait: how many there may be has a bound."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import pytest

from services.common.errors import PreconditionFailed, SyntaxFault
from services.common.message import amqp_0_9, field_table
from services.common.message.amqp_0_9 import FORMAT
from services.common.message.bounds import LITTLE, MOST_KEPT, MOST_READ, MOST_SENT


def properties(headers: Mapping[str, Any]) -> bytes:
    return amqp_0_9.compose({}, headers, persistent=False, priority=0)


def named(count: int) -> dict[str, Any]:
    return {f"k{number}": number for number in range(count)}


def test_one_of_many() -> None:
    """Whoever wants one has the others passed over, whatever they are; it is found among as many as there may be."""
    odd = b"\x01aF\0\0\0\3\1b?"  # what is nested in it is of no type
    table = odd + b"\x01kS\0\0\0\1x" + b"\x01kS\0\0\0\1y"
    said = struct.pack(">HI", 0x2000, len(table)) + table
    assert FORMAT.header(said, "k") == "y"
    assert FORMAT.header(said, "other") is None
    assert FORMAT.header(b"\0\0", "k") is None
    assert FORMAT.header(properties(named(MOST_READ + 1)), "k7") == 7
    with pytest.raises(SyntaxFault):
        FORMAT.header(properties(named(MOST_KEPT + 1)), "k7")


@pytest.mark.parametrize(
    ("table", "count"),
    [
        ({}, 0),
        (named(3), 3),
        ({"a": {"b": {}, "c": {"d": 1}}, "e": 2}, 5),
        ({"a": [1, [2, [], {"b": 3}]], "c": [], "d": "x"}, 9),
    ],
)
def test_how_many(table: dict[str, Any], count: int) -> None:
    """Those of tables and arrays within count as well."""
    data = field_table.encode(table)
    assert not field_table.has_many(data, 0, count)
    assert not count or field_table.has_many(data, 0, count - 1)


@pytest.mark.parametrize("headers", [named(MOST_SENT + 1), {"a": [None] * 5000}, {"a": {"b": [[1] * 50] * 50}}])
def test_what_is_published(headers: dict[str, Any]) -> None:
    """No headers have so many fields that a later reader stops."""
    with pytest.raises(PreconditionFailed, match="fields in its headers"):
        FORMAT.attributes(properties(headers))


def test_the_most_that_is_published() -> None:
    """A queue that dead-letters such a message adds to its headers, and the next one reads all of them."""
    raw = properties(named(MOST_SENT))
    FORMAT.attributes(raw)
    deaths = [{"queue": f"q{number}", "count": 1, "reason": "expired"} for number in range(200)]
    assert FORMAT.headers(FORMAT.with_headers(raw, named(MOST_SENT) | {"x-death": deaths}))["x-death"] == deaths
    assert FORMAT.attributes(properties({"text": "x" * 100_000})) is FORMAT.attributes(properties({}))


def test_what_was_stored_before() -> None:
    """What a former release took is read, up to a bound beyond which it is as what nobody can read."""
    raw = properties(named(MOST_READ + 1))
    assert FORMAT.headers(raw) == named(MOST_READ + 1)
    with pytest.raises(SyntaxFault, match="more than 65536 fields"):
        FORMAT.headers(properties(named(MOST_KEPT + 1)))
    with pytest.raises(SyntaxFault, match="more than 4096 fields"):
        FORMAT.more_keys(raw)
    assert FORMAT.trace_context(raw) is None
    assert FORMAT.headers(FORMAT.with_headers(raw, {"x-death": []})) == {"x-death": []}


def test_tables_that_reach_over_the_end_of_theirs() -> None:
    """They count as what is read of them, not as what is around them says."""
    many = b"\x00V" * 9000
    inner = b"\x00F" + struct.pack(">I", len(many)) + many
    with pytest.raises(SyntaxFault, match="more than 4096 fields"):
        field_table.decode_at(struct.pack(">I", 6) + inner, 0)


def test_little_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a usual message nothing is counted."""
    raw = properties(named(300))
    assert len(raw) < LITTLE
    monkeypatch.setattr(field_table, "_has_many", None)
    FORMAT.attributes(raw)
    assert len(FORMAT.headers(raw)) == 300
