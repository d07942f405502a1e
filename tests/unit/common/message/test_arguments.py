"""Arguments as they are stored and sent."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from services.common.errors import SyntaxFault
from services.common.message import arguments, field_table
from tests.support.field_tables import TABLES, nested, typed


def _strictly(data: bytes) -> Any:
    def refuse(token: str) -> None:
        raise AssertionError(token)

    return json.loads(data or b"{}", parse_constant=refuse)


@pytest.mark.fuzz
@given(TABLES)
def test_any_table_of_a_client_comes_back(wire: bytes) -> None:
    """Anything that a client encodes is the same, types and all, after a dump and a load; in between it is JSON."""
    table = field_table.decode(wire)
    dumped = arguments.dump(table)
    _strictly(dumped)
    assert typed(arguments.load(dumped)) == typed(table)


@pytest.mark.fuzz
@given(TABLES)
def test_any_table_of_a_client_can_be_written_again(wire: bytes) -> None:
    """What was decoded can be encoded, and is the same again: a dead letter loses none of its headers."""
    table = field_table.decode(wire)
    assert typed(field_table.decode(field_table.encode(table))) == typed(table)


@pytest.mark.fuzz
@given(TABLES, TABLES)
def test_equal_json_is_equal_tables(one: bytes, other: bytes) -> None:
    """Two tables have the same JSON exactly when they are the same."""
    left, right = field_table.decode(one), field_table.decode(other)
    assert (arguments.dump(left) == arguments.dump(right)) == (typed(left) == typed(right))


_LOOK_ALIKES = [
    {"!decimal": "x"},
    {"!decimal": "1.5"},
    {"a": {"!decimal": "x"}},
    {"a": {"!decimal": "1.5"}},
    {"a": {"!bytes": "AAAA"}},
    {"a": {"!time": 1}},
    {"a": {"!table": {"!table": {"b": 1}}}},
    {"a": [{"!float": "nan"}, {"!": None}]},
]


@pytest.mark.parametrize("table", _LOOK_ALIKES)
def test_no_table_is_taken_for_a_value(table: dict[str, Any]) -> None:
    """A client's own table that looks like a wrapped value stays a table."""
    assert arguments.load(arguments.dump(table)) == table


@pytest.mark.parametrize(
    ("record", "table"),
    [
        (b'{"a": {"!bytes": "/w=="}}', {"a": b"\xff"}),
        (b'{"a": {"!time": 1767225600}}', {"a": datetime(2026, 1, 1, tzinfo=UTC)}),
        (b'{"a": {"!decimal": "1.50"}}', {"a": Decimal("1.50")}),
        (b'{"a": {"b": {"c": [1, {"!bytes": ""}]}}}', {"a": {"b": {"c": [1, b""]}}}),
    ],
)
def test_reads_and_writes_what_was_written_before(record: bytes, table: dict[str, Any]) -> None:
    """Records on disk mean what they meant, and are written as they were: a binding is found by its arguments."""
    assert arguments.load(record) == table
    assert arguments.dump(table) == record


@pytest.mark.parametrize(
    ("record", "table"),
    [
        (b'{"!decimal": "x"}', {"!decimal": "x"}),
        (b'{"a": {"!decimal": "x"}}', {"a": {"!decimal": "x"}}),
        (b'{"a": {"!decimal": "sNaN"}}', {"a": {"!decimal": "sNaN"}}),
        (b'{"a": {"!time": 1e300}}', {"a": {"!time": 1e300}}),
        (b'{"a": {"!time": true}}', {"a": {"!time": True}}),
        (b'{"a": {"!bytes": [1]}}', {"a": {"!bytes": [1]}}),
    ],
)
def test_poisoned_records_are_clients_tables(record: bytes, table: dict[str, Any]) -> None:
    """What no value is written as was a client's own table, from when those were not told apart."""
    assert typed(arguments.load(record)) == typed(table)


def test_a_number_that_is_none_was_written_as_a_bare_word() -> None:
    """NaN in a record from before is read."""
    assert typed(arguments.load(b'{"a": NaN, "b": -Infinity}')) == typed({"a": float("nan"), "b": float("-inf")})


@pytest.mark.parametrize("data", [b"{", b"[1]", b"\xff", b'{"a":' * 100_000, b'{"a": 1' + b"0" * 5000 + b"}"])
def test_bytes_that_are_no_arguments(data: bytes) -> None:
    """Any wrong argument is a syntax fault."""
    with pytest.raises(SyntaxFault):
        arguments.load(data)


@pytest.mark.parametrize("in_arrays", [False, True])
def test_tables_in_tables_without_end(in_arrays: bool) -> None:
    """A table 1,000 deep is refused where it is read."""
    with pytest.raises(SyntaxFault, match="nested deeper"):
        field_table.decode(nested(1000, in_arrays=in_arrays))
