"""Queries that take long, of few objects: a request is an expression of 8 KiB."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from services.mgmt.model.query import query as queries
from services.mgmt.rest.model import querying
from tests.support.rest import Get

SLOW = {"select": "name", "where": f"name IN ({','.join(['id'] * 2700)})"}


async def _at(get: Get, method: str, path: str, body: object = None) -> tuple[int, Any]:
    status, told, _ = await get(f"/api/latest/{path}", "guest:guest", method, body)
    return status, told


async def test_others_have_their_turns(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is answered everything else in the process goes on."""
    monkeypatch.setattr(querying, "_PATIENCE", 60.0)  # however slow the machine is
    assert await _turns(get, SLOW) > 2 * await _turns(get, {"select": "name"})


async def _turns(get: Get, query: object) -> int:
    """Of others, while a query is answered."""
    asked, turns = asyncio.ensure_future(_at(get, "POST", "querybroker/plugin", query)), 0
    while not asked.done():
        await asyncio.sleep(0)
        turns += 1
    assert (await asked)[0] == 200
    return turns


async def test_it_ends(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes too long is ended, and how to ask for less is told."""
    monkeypatch.setattr(querying, "_PATIENCE", 0.05)
    status, told = await _at(get, "POST", "querybroker/plugin", SLOW)
    assert (status, "where, orderBy and select ask for less" in told["errorMessage"]) == (422, True), told
    assert (await _at(get, "POST", "querybroker/plugin", {"select": "name", "limit": 1}))[0] == 200


async def test_busy_machine(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what it takes itself counts, not how long it waits for the processor."""
    monkeypatch.setattr(querying, "_PATIENCE", 0.05)
    monkeypatch.setattr(querying.queries, "answered", _that_waits)
    assert (await _at(get, "POST", "querybroker/plugin", {"select": "name"}))[0] == 200


def _that_waits(*_: object) -> queries.Steps[queries.Result]:
    """A query whose process has to wait for others between its steps."""
    for _ in range(20):
        time.sleep(0.01)
        yield
    return queries.Result([], [], 0)


async def test_many_orders(get: Get) -> None:
    """Are refused, of lists as well."""
    status, told = await _at(get, "GET", "plugin?orderBy=" + ",".join(["id"] * 11))
    assert (status, "no more than 10" in told["errorMessage"]) == (422, True), told
