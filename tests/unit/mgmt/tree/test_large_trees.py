"""A tree of thousands of objects, told all at once."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Mapping
from typing import Any

import pytest

from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.queue import Queue
from services.mgmt.service import Service
from services.mgmt.tree.category import Keeper
from tests.support.fake_store import FakeStore
from tests.support.large_tree import asked, put_queues

QUEUES = 20_000
LONGEST = 0.15  # of the time that all of it takes: in which no other request is answered


@pytest.fixture
def store(store: FakeStore) -> FakeStore:
    """With many queues."""
    put_queues(store, QUEUES)
    return store


async def _longest_wait(while_: asyncio.Task[bytes]) -> float:
    """How long the event loop did nothing else: a part of all of the time."""
    # Of this thread's own time, and without collections of garbage: other processes and tests are not what is asked.
    gc.disable()
    longest, began = 0.0, time.thread_time()
    last = began
    while not while_.done():
        await asyncio.sleep(0.001)
        now = time.thread_time()
        longest, last = max(longest, now - last), now
    gc.enable()
    return longest / (last - began)


def _names(told: Any) -> set[str]:
    """Of queues, wherever they are in the tree."""
    if isinstance(told, list) and len(told) == QUEUES:
        return {each["name"] for each in told}
    [below] = told if isinstance(told, list) else [told]
    return _names(next(below[name] for name in ("queues", "virtualhosts", "virtualhostnodes") if name in below))


@pytest.mark.parametrize(
    "path",
    [
        "api/latest/broker?depth=10",
        "api/latest/virtualhost?depth=10",
        "api/latest/queue",
        "api/queues",
        "service/structure",
    ],
)
async def test_others_are_answered_meanwhile(mgmt: Service, path: str) -> None:
    """Everything below is shown, and the event loop goes on: a request for health is answered."""
    await asked(mgmt.http_port, f"/{path}")  # what is made once
    telling = asyncio.create_task(asked(mgmt.http_port, f"/{path}"))
    longest = await _longest_wait(telling)
    assert _names(json.loads(telling.result())) == {f"q{number}" for number in range(QUEUES)}
    assert longest < LONGEST


async def test_a_page_tells_no_others(mgmt: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """In whichever order: of those that are not on it, one number is read, and nothing else is made.

    And what is read of many at once is what each object says by itself.
    """
    read, measure = list[str](), Keeper.measure

    def measured(its: Keeper, found: ConfiguredObject) -> Mapping[str, int]:
        read.append(found.actual["name"])
        return measure(its, found)

    monkeypatch.setattr(Keeper, "measure", measured)
    for name in (*Queue.statistics, "name", "state"):
        read.clear()
        page = json.loads(await asked(mgmt.http_port, f"/api/latest/queue?orderBy={name}%20desc&limit=10"))
        assert [each["name"] for each in page] == read, name
        assert len(page) == 10
    tree = mgmt._tree
    found = tree.find("queue", ["/", "/"])[:20]
    for name in (*Queue.attributes, *Queue.statistics):
        assert tree.column(found, name) == [tree.look(each, name) for each in found], name
    measured = [tree.measure(each) for each in found]
    for name in Queue.statistics:
        assert tree.column(found, name) == [each.get(name) for each in measured], name
