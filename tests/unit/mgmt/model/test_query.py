"""The query API's expressions, as Broker-J's documentation has them."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from services.mgmt.model.broker import Broker
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.query import query
from services.mgmt.model.query.compiled import Compiler, NotParsed
from services.mgmt.model.query.functions import concat
from services.mgmt.model.query.query import Query, Result, answered
from services.mgmt.model.queue import Queue
from services.mgmt.model.virtual_host import VirtualHost, VirtualHostNode

NOW = 1_700_000_000_000
DEPTHS = {"a": 5, "b": 0, "c_1": 7}


def _queues() -> list[ConfiguredObject]:
    node = VirtualHostNode(Broker(None, {"name": "Broker"}), {"name": "v"})
    host = VirtualHost(node, {"name": "v"})
    told: list[dict[str, Any]] = [
        {"name": "a", "durable": True, "createdTime": NOW - 60_000},
        {"name": "b", "durable": False, "context": {"team": "x"}},
        {"name": "c_1", "description": "it's"},
    ]
    return [Queue(host, each, each["name"]) for each in told]


def _look(found: ConfiguredObject, name: str) -> Any:
    return found.value(name) if name in found.attributes else DEPTHS.get(found.incarnation)


def _answered(query: Query, found: list[ConfiguredObject], compiler: Compiler) -> Result:
    """All steps at once."""
    steps = answered(query, found, compiler)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: Result = done.value
            return result


COMPILER = Compiler(Queue, _look, NOW)


def _names(where: str, order: str = "") -> list[str]:
    return [row[0] for row in _answered(Query("name", where, order), _queues(), COMPILER).results]


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("queueDepthMessages > 4", ["a", "c_1"]),
        ("queueDepthMessages > 4 and durable = false or name = 'b'", ["b"]),
        ("(queueDepthMessages > 4 OR durable = false) AND NOT name = 'b'", ["a", "c_1"]),
        ("queueDepthMessages BETWEEN 5 AND 7", ["a", "c_1"]),
        ("queueDepthMessages NOT BETWEEN 5 AND 7", ["b"]),
        ("queueDepthMessages - 2 * 2 = 1", ["a"]),
        ("name LIKE 'c%'", ["c_1"]),
        ("name LIKE '_'", ["a", "b"]),
        ("name LIKE 'c!_1' ESCAPE '!'", ["c_1"]),
        ("name NOT LIKE '%1'", ["a", "b"]),
        ("name IN ('a', 'b')", ["a", "b"]),
        ("name NOT IN ('a', 'b')", ["c_1"]),
        ("description IS NULL", ["a", "b"]),
        ("description = 'it''s'", ["c_1"]),
        ("createdTime > date_add(now(), '-PT2M')", ["a"]),
        ("createdTime >= to_date('2023-11-14T22:12:20Z')", ["a"]),
        ("context.team = 'x'", ["b"]),
        ("concat(name, '@', $parent.name) = 'a@v'", ["a"]),
        ("$parent.$parent.$parent.name = 'Broker' and name > 'b'", ["c_1"]),
        ("name = 5", []),
        ("NOT name = 5", []),
        ("description <> 'x'", ["c_1"]),
        ("queueDepthMessages / 0 > 1", []),
        ("1e300 * 1e300 > 1", []),
    ],
)
def test_where(where: str, names: list[str]) -> None:
    """What is compared with nothing, or with another kind, applies neither so nor the other way round."""
    assert _names(where) == names


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("queueDepthMessages DESC", ["c_1", "a", "b"]),
        ("1 desc", ["c_1", "b", "a"]),
        ("durable, name DESC", ["b", "c_1", "a"]),
        ("concat(description, name)", ["a", "b", "c_1"]),
    ],
)
def test_order(order: str, names: list[str]) -> None:
    """By expressions or numbers of columns; the first counts most."""
    assert _names("", order) == names


def test_columns_and_pages() -> None:
    """Headers are as columns are called, or written; the total is of all that applies."""
    select = "concat(name, ', x') AS label, queueDepthMessages, to_string( 5 )"
    result = _answered(Query(select, "queueDepthMessages > 0", "1", limit=1, offset=1), _queues(), COMPILER)
    assert result.headers == ["label", "queueDepthMessages", "to_string( 5 )"]
    assert (result.results, result.total) == ([["c_1, x", 7, "5"]], 2)


def test_like_takes_no_time() -> None:
    """For any pattern, each part between two % is looked for once."""
    began = process_time()
    assert _names(f"concat(name, '{'a' * 5000}') LIKE '{'%a' * 500}%!'") == []
    assert process_time() - began < 1


def test_texts_do_not_multiply() -> None:
    """A short expression makes no text of megabytes of each of thousands of objects."""
    with pytest.raises(IllegalConfiguration, match="concat: "):
        concat(*["a" * 255] * 100)


def test_more_than_an_answer_should_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is not made: what there is of it by then is thrown away, and how to ask for less is told."""
    monkeypatch.setattr(query, "LARGEST", 100)
    with pytest.raises(IllegalConfiguration, match="limit, offset and select"):
        _answered(Query(f"concat(name, '{'a' * 90}')"), _queues(), COMPILER)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (Query(where="name ="), "where: not understood at character"),
        (Query(where="nonsense = 1"), "Queue has neither an attribute nor a statistic 'nonsense'"),
        (Query(where="f(1) = 1"), "there is no function f; there are now, concat"),
        (Query(where="to_date() = 1"), "to_date: 1 to 1 arguments are wanted, not 0"),
        (Query(select="name,"), "select: not understood"),
        (Query(select="name; drop"), "select: not understood at character 5: '; drop'"),
        (Query(order_by="3"), "orderBy: there is no column 3"),
        (Query(order_by=",".join("1" * 11)), "orderBy: no more than 10"),
        (Query(select="1e999"), "too large a number"),
        (Query(select="9" * 5000), "too large a number"),
        (Query(select=",".join("1" * 101)), "select: no more than 100 columns"),
        (Query(where="name LIKE 'a' ESCAPE 'ab'"), "one character is wanted"),
        (Query(where="1=1 AND " * 2000 + "1=1"), "longer than"),
    ],
)
def test_what_is_no_expression(asked: Query, why: str) -> None:
    """Is told with the place, or with what there is."""
    with pytest.raises(NotParsed, match=why):
        _answered(asked, _queues(), COMPILER)


@pytest.mark.parametrize(
    "where",
    [
        "name + 1 = 2",
        "to_date(name) = 1",
        "date_add(1, 'soon') = 1",
        f"date_add(now(), 'P9{'9' * 400}D') = 1",
        "date_add(now(), 'P9999999D') = 1",
        f"date_add(now(), 'P9{'9' * 400}DT-9{'9' * 400}H') = 1",
        "NOT " * 1500 + "durable = true",
    ],
)
def test_what_cannot_be_said(where: str) -> None:
    """What is an expression, and means nothing for an object, is told as such, and ends nothing."""
    with pytest.raises(IllegalConfiguration) as caught:
        _names(where)
    assert not isinstance(caught.value, NotParsed) or "NOT" in where


def test_between_in_between_takes_no_time() -> None:
    """What is held against two ends is told once: 23 in each other took seven seconds."""
    where = "(" * 40 + "TRUE" + " BETWEEN FALSE AND TRUE)" * 40
    began = process_time()
    assert _names(where) == ["a", "b", "c_1"]
    assert process_time() - began < 1
