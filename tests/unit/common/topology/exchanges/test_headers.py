from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import PreconditionFailed
from services.common.message import arguments
from services.common.topology.exchanges.exchange_type import Binding
from services.common.topology.exchanges.headers import HeadersExchange


def _matches(table: Any, headers: Any) -> bool:
    exchange = HeadersExchange()
    exchange.bind(Binding(1, "", arguments.dump(table)))
    return exchange.route([""], headers) == {1}


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
    assert exchange.route([""], {}) == set()


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
    assert exchange.route([""], headers) == {number for number, table in bound.items() if _naive(table, headers)}


class _Counted(dict[Any, Any]):
    """Headers, or children of a node, that count how often something is looked up in all of them."""

    looks = 0

    def get(self, key: Any, default: Any = None) -> Any:
        _Counted.looks += 1
        return super().get(key, default)

    def items(self) -> Any:
        _Counted.looks += len(self)
        return super().items()


@pytest.mark.parametrize("size", [10, 26_000])
def test_many_headers_are_looked_at_once(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """A binding of 26,000 conditions takes as many looks, where the message has all of them and where one is wrong."""
    exchange, table = HeadersExchange(), {f"h{number:05}": number for number in range(size)}
    exchange.bind(Binding(1, "", arguments.dump(table)))
    node = exchange._all
    while node.children:
        (node.children,) = (_Counted(node.children),)
        [node] = node.children.values()
    for headers, found in ((table, {1}), (table | {f"h{size - 2:05}": "wrong"}, set())):
        monkeypatch.setattr(_Counted, "looks", 0)
        assert exchange.route([""], headers) == found
        assert _Counted.looks <= 3 * size


@given(
    st.lists(st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from([1, 2, None]), max_size=8), max_size=12),
    st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from([1, 2]), max_size=8),
)
def test_both_ways_through_the_trie_find_what_matches(tables: list[dict[str, Any]], headers: dict[str, Any]) -> None:
    """Whether a message has more headers than a node has children or fewer, the bindings that hold are found."""
    exchange = HeadersExchange()
    for number, table in enumerate(tables):
        exchange.bind(Binding(number, "", arguments.dump(table)))
    expected = {
        number
        for number, table in enumerate(tables)
        if all(name in headers and value in (None, headers[name]) for name, value in table.items())
    }
    assert exchange.route([""], headers) == expected
