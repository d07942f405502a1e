"""What is made of a tree of many objects, a few at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

import pytest

from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.service import Service
from services.mgmt.tree.mirror import OVERLAY
from services.mgmt.tree.queues import Queues
from services.mgmt.turns import at_once
from services.rpc.store_pb2 import Record
from tests.support.fake_store import FakeStore
from tests.support.large_tree import asked, put_queues, queue

QUEUES = 300


@pytest.fixture
def store(store: FakeStore) -> FakeStore:
    """With many queues."""
    put_queues(store, QUEUES)
    return store


def _changed(mgmt: Service, number: int) -> None:
    """As if a client had declared a queue, and somebody had described it."""
    _apply(mgmt, queue(number))
    _apply(mgmt, _overlay(["Queue", "/", "/", f"q{number}", str(number + 1)], {"description": "one more"}))


def _overlay(key: list[str], value: Mapping[str, Any]) -> Record:
    """What management keeps of an object."""
    return Record(kind=OVERLAY, key=json.dumps(key), value=json.dumps(value).encode())


def _apply(mgmt: Service, record: Record) -> None:
    """As the store tells it."""
    mgmt._tree.house.mirror._apply(mgmt._tree.house.mirror.tables, record)


@pytest.mark.parametrize(
    "path",
    [
        "api/latest/queue?limit=10",
        "api/latest/queue/%252F/%252F/q7",
        "api/latest/consumer",
        "api/latest/virtualhost?depth=1",
        "api/latest/querybroker/queue?limit=10",
        "service/structure",
    ],
)
@pytest.mark.parametrize("known", [False, True])
async def test_what_has_changed_is_made_in_turns(
    mgmt: Service, monkeypatch: pytest.MonkeyPatch, path: str, known: bool
) -> None:
    """Also where little of it is told: the event loop goes on between any two objects that are made for that."""
    await asked(mgmt.http_port, f"/{path if known else 'api/latest/user'}")
    _changed(mgmt, QUEUES)
    for place in ("services.mgmt.turns", "services.mgmt.rest.pieces", "services.mgmt.rest.model.querying"):
        monkeypatch.setattr(f"{place}.TURN", 0.0)
    telling, turns = asyncio.create_task(asked(mgmt.http_port, f"/{path}")), 0
    while not telling.done():
        await asyncio.sleep(0)
        turns += 1
    assert telling.result()
    assert turns > QUEUES


async def test_several_who_want_what_has_changed(mgmt: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made once, however many ask for it meanwhile, and also where the first of them goes."""
    await asked(mgmt.http_port, "/api/latest/user")
    tree = mgmt._tree
    [host], keeper, told = tree.find("virtualhost", ["/", "/"]), tree.categories["queue"], list[str]()
    make = Queues._make

    def noted(self: Queues, parent: ConfiguredObject | None, own: dict[str, Any], incarnation: str) -> ConfiguredObject:
        told.append(own["name"])
        return make(self, parent, own, incarnation)

    monkeypatch.setattr(Queues, "_make", noted)
    first, *others = [keeper.making(host) for _ in range(5)]
    for _ in range(20):
        for each in (first, *others):
            next(each)
    first.close()
    made = [at_once(each) for each in others]
    assert all(each is made[0] for each in made)
    assert keeper.children(host) is made[0]
    assert sorted(told) == sorted(made[0])
    _changed(mgmt, QUEUES)
    assert f"q{QUEUES}" in keeper.children(host)


async def test_one_that_is_stopped_while_it_is_told(mgmt: Service) -> None:
    """It is there, as it was or as it is."""
    await asked(mgmt.http_port, "/api/latest/user")
    tree = mgmt._tree
    for category, kind, value in (
        ("Port", "port", {"name": "x", "port": 1}),
        ("AuthenticationProvider", "authentication_provider", {"type": "anonymous", "options": {}}),
    ):
        aside = _overlay([category, "x", ""], {"setAside": {"state": "STOPPED", "value": value}})
        record = Record(kind=kind, key="x", value=json.dumps(value).encode())
        _apply(mgmt, aside)
        made = tree.categories[category.lower()].making(tree.broker)
        next(made)
        _apply(mgmt, record)
        _apply(mgmt, Record(kind=OVERLAY, key=aside.key, deleted=True))
        assert "x" in at_once(made)


async def test_records_that_change_while_it_is_made(mgmt: Service) -> None:
    """Of each category: it goes on, and the next request shows what has changed."""
    await asked(mgmt.http_port, "/api/latest/user")
    tree, number = mgmt._tree, QUEUES
    for name in ("a", "b", "c"):
        aside = {"setAside": {"state": "STOPPED", "value": {"name": name, "port": 1}}}
        for category in ("Port", "AuthenticationProvider"):
            _apply(mgmt, _overlay([category, name, ""], aside))
    for each in tree.categories.values():
        above = tree.find(each.kind.parent_kind.lower(), []) if each.kind.parent_kind else [None]
        made = each.making(above[0] if above else tree.broker)
        for _ in islice(made, 20):
            _changed(mgmt, number)
            number += 1
        at_once(made)
    assert f"q{number - 1}" in {each.actual["name"] for each in tree.find("queue", [])}
