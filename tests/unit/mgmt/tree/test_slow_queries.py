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
    monkeypatch.setattr(querying, "TURN", 0.0)  # each step is one, however fast the machine is
    monkeypatch.setattr(querying, "_PATIENCE", 60.0)  # and however slow
    answered, turns, seen = querying.queries.answered, [0], set[int]()

    def watched(*asked: Any) -> queries.Steps[queries.Result]:
        steps = answered(*asked)
        while True:
            seen.add(turns[0])
            try:
                next(steps)
            except StopIteration as done:
                result: queries.Result = done.value
                return result
            yield

    monkeypatch.setattr(querying.queries, "answered", watched)
    asked = asyncio.ensure_future(_at(get, "POST", "querybroker/plugin", SLOW))
    while not asked.done():
        await asyncio.sleep(0)
        turns[0] += 1
    assert (await asked)[0] == 200
    assert len(seen) > 10


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
