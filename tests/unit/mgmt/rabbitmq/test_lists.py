"""Long lists for the command line: others have their turn while they are made."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from services.mgmt import turns as turns_of_the_loop
from services.mgmt.rabbitmq.lists import pages
from services.mgmt.rabbitmq.objects import Objects
from services.mgmt.tree.counts import Counts, Row
from services.mgmt.tree.mirror import Mirror
from services.mgmt.turns import at_once
from services.rpc import objects_pb2 as pb
from services.rpc.store_pb2 import Record, Records

_MANY = 2000


async def _records() -> Any:
    host = Record(kind="virtual_host", key="/", value=b'{"name": "/"}')
    yield Records(records=[host, *map(_queue, range(_MANY)), *map(_binding, range(_MANY))], snapshot=True, last=True)


async def _change(*records: Record) -> AsyncIterator[Records]:
    yield Records(records=records, last=True)


def _queue(number: int, *, durable: bool = True) -> Record:
    told = {"name": f"q{number}", "virtual_host": "/", "id": number, "partition": number % 8, "arguments": ""}
    value = {**told, "durable": durable, "auto_delete": False, "exclusive_to": ""}
    return Record(kind="queue", key=str(number), value=json.dumps(value).encode())


def _binding(number: int) -> Record:
    value = {"source": "shop", "virtual_host": "/", "destination": number, "routing_key": "k", "arguments": ""}
    return Record(kind="binding", key=str(number), value=json.dumps(value).encode())


@pytest.fixture
async def broker() -> Any:
    mirror = Mirror()
    await mirror.follow(_records())
    rows = {number: Row(number % 7, 0, 0) for number in range(_MANY)}
    counts = SimpleNamespace(last=Counts(rows), fresh=AsyncMock())
    owner = SimpleNamespace(owner_of=lambda partition: f"queue-{partition}")
    house: Any = SimpleNamespace(mirror=mirror, counts=counts, ready=AsyncMock(), purging=owner)
    return SimpleNamespace(house=house, objects=Objects(house))


@pytest.mark.parametrize(
    ("asked", "found", "turns"),
    [
        (pb.ListRequest(kind=pb.QUEUE), _MANY, 19),
        (pb.ListRequest(kind=pb.QUEUE, fits={"node": "queue-3"}), _MANY // 8, 10),
        (pb.ListRequest(kind=pb.QUEUE, sort="node", most=10), 10, 20),
        (pb.ListRequest(kind=pb.QUEUE, sort="messages", descending=True), _MANY, 29),
        (pb.ListRequest(kind=pb.BINDING), 2 * _MANY, 39),
    ],
    ids=["all", "some", "the first", "sorted", "bindings"],
)
async def test_turns(
    broker: Any, asked: pb.ListRequest, found: int, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each few hundred rows, while it is seen which fit, in each step while they are sorted, and between pages."""
    monkeypatch.setattr(turns_of_the_loop, "TURN", 0)
    had = 0

    async def have_turns() -> None:
        nonlocal had
        while True:
            await asyncio.sleep(0)
            had += 1

    other = asyncio.ensure_future(have_turns())
    count = 0
    async for page in pages(broker, asked):
        assert len(page.rows) <= 200
        assert page.total == found
        count += len(page.rows)
    other.cancel()
    assert count == found
    assert had >= turns


async def test_the_order_of_rows_is_kept(broker: Any) -> None:
    """By name; who wants it while others sort, or after a change, has all of what there is."""
    objects, mirror = broker.objects, broker.house.mirror
    names = sorted(f"q{number}" for number in range(_MANY))
    begun = objects.queues_in_place("/")
    next(begun)
    found = at_once(objects.queues_in_place("/"))
    assert [row["name"] for row in found] == [row["name"] for row in at_once(begun)] == names
    assert at_once(objects.queues_in_place("/")) is found
    await mirror.follow(_change(_queue(_MANY)))
    assert [row["name"] for row in at_once(objects.queues_in_place("/"))] == sorted([*names, f"q{_MANY}"])
    assert at_once(objects.queues_in_place("nowhere")) == []


async def test_rows_are_kept(broker: Any) -> None:
    """Rows of unchanged queues are kept for the next list, over HTTP or at the command line."""
    objects, mirror = broker.objects, broker.house.mirror
    first = {id(row) for row in objects.each_queue("/")}
    assert {id(row) for row in objects.queues("/")} == first
    assert objects.queues("/") is objects.queues("/")
    await mirror.follow(_change(_queue(7, durable=False)))
    slow = objects.each_queue("/")
    assert next(slow)["name"] == "q0"
    await mirror.follow(_change(_queue(8, durable=False)))
    assert [row["name"] for row in objects.queues("/") if id(row) not in first] == ["q7", "q8"]
    assert [row["name"] for row in slow if not row["durable"]] == ["q7"]
    assert [row["name"] for row in objects.queues("/") if not row["durable"]] == ["q7", "q8"]
