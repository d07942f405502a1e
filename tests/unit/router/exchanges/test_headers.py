from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import PreconditionFailed
from services.common.message import arguments
from services.router.exchanges.exchange_type import Binding
from services.router.exchanges.headers import HeadersExchange


def _matches(table: Any, headers: Any) -> bool:
    exchange = HeadersExchange()
    exchange.bind(Binding(1, "", arguments.dump(table)))
    return exchange.route("", headers) == {1}


_CASES = [
    ({"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}, True),
    ({"a": 1, "b": 2}, {"a": 1}, False),
    ({"x-match": "all", "a": 1}, {"a": 2}, False),
    ({"x-match": "any", "a": 1, "b": 2}, {"b": 2}, True),
    ({"x-match": "any", "a": 1, "b": 2}, {"a": 2, "b": 1}, False),
    ({"x-match": "any"}, {"a": 1}, False),
    ({"x-match": "all"}, {}, True),
    ({"a": None}, {"a": "whatever"}, True),
    ({"a": None}, {"b": 1}, False),
    ({"x-match": "any", "a": None}, {"a": None}, True),
    ({"x-a": 1}, {}, True),
    ({"x-match": "all-with-x", "x-a": 1}, {}, False),
    ({"x-match": "all-with-x", "x-a": 1}, {"x-a": 1}, True),
    ({"x-match": "any", "x-a": 1}, {"x-a": 1}, False),
    ({"x-match": "any-with-x", "x-a": 1}, {"x-a": 1}, True),
    ({"a": 1}, {"a": True}, False),
    ({"a": 1}, {"a": 1.0}, False),
    ({"a": "text"}, {"a": b"text"}, True),
    ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, True),
    ({"a": {"b": 1}}, {"a": {"b": 2}}, False),
    ({"a": Decimal("1.5")}, {"a": Decimal("1.5")}, True),
    ({"a": datetime(2026, 1, 1, tzinfo=UTC)}, {"a": datetime(2026, 1, 1, tzinfo=UTC)}, True),
]


@pytest.mark.specification("AMQP 0-9-1, 3.1.3.4")
@pytest.mark.parametrize(("table", "headers", "matches"), _CASES)
def test_match(table: Any, headers: Any, matches: Any) -> None:
    """`all` and `any` of the arguments, a missing value asks for existence, x- counts only where it is said."""
    assert _matches(table, headers) is matches


@pytest.mark.parametrize("wrong", ["most", 1, None, ["all"]])
def test_unknown_x_match_is_refused(wrong: Any) -> None:
    """An x-match that means nothing is a failed precondition and binds nothing."""
    exchange = HeadersExchange()
    with pytest.raises(PreconditionFailed, match="x-match"):
        exchange.bind(Binding(1, "", arguments.dump({"x-match": wrong})))
    assert exchange.route("", {}) == set()


def _naive(table: Any, headers: Any) -> bool:
    match = table.get("x-match", "all")
    conditions = [
        key in headers if value is None else key in headers and repr(headers[key]) == repr(value)
        for key, value in table.items()
        if key != "x-match" and (match.endswith("-with-x") or not key.startswith("x-"))
    ]
    return any(conditions) if match.startswith("any") else all(conditions)


_values = st.sampled_from([None, 1, 2, True, 1.0, "1"])
_headers = st.dictionaries(st.sampled_from(["a", "b", "c", "d", "x-e"]), _values, max_size=5)
_tables = st.builds(
    lambda headers, match: headers | ({"x-match": match} if match else {}),
    _headers,
    st.sampled_from(["", "all", "any", "all-with-x", "any-with-x"]),
)


@given(st.lists(_tables, max_size=12, unique_by=repr), st.data(), _headers)
def test_index_agrees_with_looking_at_each(tables: Any, data: Any, headers: Any) -> None:
    """For any bindings, some of them unbound again, the index finds what looking at each alone finds."""
    exchange = HeadersExchange()
    bound = dict(enumerate(tables))
    for number, table in bound.items():
        exchange.bind(Binding(number, "", arguments.dump(table)))
    for number in data.draw(st.sets(st.sampled_from(sorted(bound)))) if bound else ():
        exchange.unbind(Binding(number, "", arguments.dump(bound.pop(number))))
    assert exchange.route("", headers) == {number for number, table in bound.items() if _naive(table, headers)}
