"""Lists as they are asked for, where a whole broker says no more about them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from services.common.errors import SyntaxFault
from services.mgmt import turns as turns_of_the_loop
from services.mgmt.rabbitmq import columns
from services.mgmt.rest.rabbitmq.listing import Wanted, listed
from services.mgmt.tree import matching

ROWS = [{"name": f"q{number}", "arguments": {"n": {"deep": 9 - number}}} for number in range(10)]


async def test_a_slow_expression(monkeypatch: pytest.MonkeyPatch) -> None:
    """All names together may take a moment, and others are served meanwhile."""
    monkeypatch.setattr(matching, "PATIENCE", 0.3)
    rows, turns = [{"name": f"{number:021}"} for number in range(400)], 0
    asked = asyncio.ensure_future(listed(rows, Wanted(page=1, name="^(?:.*?){6}[!?]$", use_regex=True)))
    while not asked.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert turns > 3
    with pytest.raises(SyntaxFault, match="name"):
        await asked


async def test_rows_without_a_name() -> None:
    """Are called nothing, and several of one name are all told."""
    rows: list[dict[str, Any]] = [{"name": "a"}, {}, {"name": "A"}, {"name": "a"}]
    answer = json.loads((await listed(rows, Wanted(page=1, name="^a$", use_regex=True))).body)
    assert [each["name"] for each in answer["items"]] == ["A", "a", "a"]


@pytest.mark.parametrize("backwards", [False, True])
async def test_without_an_order(backwards: bool) -> None:
    """By virtual host and name, as in RabbitMQ; what has no name, by what it has instead. Or the other way round."""
    queues: list[dict[str, Any]] = [{"vhost": host, "name": name} for name in "cab" for host in ("b", "a")]
    bindings = [{"vhost": "a", "source": source, "routing_key": key} for source in "yx" for key in "21"]
    for rows in (queues, bindings):
        answer = json.loads((await listed(rows, Wanted(page=1, sort_reverse=backwards))).body)
        assert answer["items"] == sorted(rows, key=lambda row: list(row.values()), reverse=backwards)


async def test_in_the_order_of_coming() -> None:
    """Connections are told as they came: 1.10 is after 1.9."""
    rows = [{"vhost": "/", "name": name} for name in ("1.9", "1.10")]
    assert json.loads((await listed(rows, Wanted(page=1), by_place=False)).body)["items"] == rows


async def test_only_a_page_is_told() -> None:
    """Also where it is in the order of something inside of a column that can be had without."""
    told = []

    def tell(row: dict[str, Any]) -> dict[str, Any]:
        told.append(row["name"])
        return dict(row)

    wanted = Wanted(page=1, page_size=2, sort="arguments.n.deep", columns="name")
    answer = json.loads((await listed(ROWS, wanted, tell, {"arguments": lambda row: row["arguments"]})).body)
    assert [each["name"] for each in answer["items"]] == told == ["q9", "q8"]


async def _told(rows: Sequence[dict[str, Any]], wanted: Wanted, *, by_place: bool = True) -> str:
    return " ".join(each["name"] for each in json.loads((await listed(rows, wanted, by_place=by_place)).body)["items"])


@pytest.mark.parametrize(("sort", "order"), [("type", "b c a d"), ("none", "a b c d"), ("none.inside", "a b c d")])
@pytest.mark.parametrize("backwards", [False, True])
async def test_rows_that_have_the_same(sort: str, order: str, backwards: bool) -> None:
    """By virtual host and name, as in RabbitMQ, and backwards the whole: also by what no row has."""
    hosts, types = {"a": "1", "b": "2", "c": "2", "d": "3"}, {"a": "y", "b": "x", "c": "x", "d": "y"}
    rows = [{"vhost": hosts[name], "name": name, "type": types[name]} for name in "dcab"]
    told = await _told(rows, Wanted(page=1, sort=sort, sort_reverse=backwards))
    assert told == (order[::-1] if backwards else order)


@pytest.mark.parametrize("backwards", [False, True])
async def test_what_is_missing_is_nought(backwards: bool) -> None:
    """As in RabbitMQ: among those that have 0, by virtual host and name, after what is less; and before texts."""
    values: dict[str, Any] = {"a": 3, "b": None, "c": 0, "d": -1, "e": None, "f": 0, "g": 2.5, "h": "text"}
    rows = [
        {"vhost": "/", "name": name} | ({"n": value} if value is not None else {}) for name, value in values.items()
    ]
    told = await _told(rows, Wanted(page=1, sort="n", sort_reverse=backwards))
    assert told == ("h a g f e c b d" if backwards else "d b c e f g a h")


async def test_connections_that_have_the_same() -> None:
    """As they came, and backwards the whole, with or without a column."""
    rows = [{"vhost": "/", "name": name, "user": "u"} for name in ("1.9", "1.10")]
    for sort in ("user", ""):
        assert await _told(rows, Wanted(page=1, sort=sort), by_place=False) == "1.9 1.10"
        assert await _told(rows, Wanted(page=1, sort=sort, sort_reverse=True), by_place=False) == "1.10 1.9"


async def test_by_what_no_row_has() -> None:
    """As RabbitMQ's own page asks for rates: only a page is told, the last of the order that there is without."""
    told = []

    def tell(row: dict[str, Any]) -> dict[str, Any]:
        told.append(row["name"])
        return dict(row)

    wanted = Wanted(page=1, page_size=2, sort="message_stats.publish_details.rate", sort_reverse=True)
    await listed(ROWS, wanted, tell, {"name": lambda row: row["name"]})
    assert told == ["q9", "q8"]


async def test_others_are_served_while_values_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """By which thousands are sorted: in turns."""
    monkeypatch.setattr(columns, "_AT_ONCE", 1)
    monkeypatch.setattr(turns_of_the_loop, "TURN", 0)
    turns = 0

    def value_of(row: dict[str, Any]) -> int:
        asyncio.get_running_loop().call_soon(turn)
        return int(row["name"][1:])

    def turn() -> None:
        nonlocal turns
        turns += 1

    found = await columns.in_order(ROWS, value_of, descending=True)
    assert [each["name"] for each in found] == [f"q{number}" for number in reversed(range(10))]
    assert turns >= len(ROWS) - 1
