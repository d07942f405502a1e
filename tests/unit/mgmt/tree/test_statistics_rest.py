"""Statistics over REST at a whole broker: what clients have done, and nothing of what nobody counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pamqp import commands

from services.mgmt.tree import recent
from tests.support.amqp_client import AmqpClient
from tests.support.managed_broker import managed_broker
from tests.support.rest import asking
from tests.unit.mgmt.tree.conftest import HOST, Managed

_ENQUEUED = "totalEnqueuedMessages"
_APART = {"metrics_queues": True, "metrics_exchanges": True, "metrics_connections": True}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "OLDEST", 0.0)


@pytest.fixture
async def counting(tmp_path: Path) -> AsyncIterator[Managed]:
    async with managed_broker(tmp_path, **_APART) as (house, mgmt):
        yield Managed(house, mgmt, asking(mgmt.http_port))


async def _statistics(managed: Managed, path: str, *known: str) -> dict[str, Any]:
    """As soon as these are `known`: they are left out until then, which on a busy machine takes its time."""
    while True:
        status, told = await managed("GET", path)
        assert status == 200, told
        [one] = told if isinstance(told, list) else [told]
        if all(name in one["statistics"] for name in known):
            return dict(one["statistics"])
        await asyncio.sleep(0.05)


async def _use(managed: Managed) -> AmqpClient:
    """Five messages, of which nobody gets the last two."""
    client = await managed.house.connect()
    await client.declare("q", durable=True)
    await client.call(1, commands.Exchange.Declare(exchange="e"), commands.Exchange.DeclareOk)
    await client.call(1, commands.Queue.Bind(queue="q", exchange="e", routing_key="k"), commands.Queue.BindOk)
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    for key in ("k", "k", "k", "none", "none"):
        client.publish(b"message", key, exchange="e")
    await client.confirmed(5)
    await client.consume("q", "mine")
    await client.bodies(3)
    return client


async def test_of_all_there_is(managed: Managed) -> None:
    """The broker's are those of all processes; of queues nothing grows unless the settings want that counted."""
    await _use(managed)
    told = await _statistics(managed, "broker", "messagesIn", "messagesOut")
    assert (told["messagesIn"], told["messagesOut"]) == (5, 3)
    assert told["bytesIn"] >= 5 * len("message")
    assert told["processCpuTime"] > 0
    assert (await _statistics(managed, "connection"))["localTransactionOpen"] == 0
    other = await managed.house.connect()
    await other.call(1, commands.Tx.Select(), commands.Tx.SelectOk)
    assert sum(each["statistics"]["localTransactionOpen"] for each in (await managed("GET", "connection"))[1]) == 1
    assert (await _statistics(managed, "virtualhost"))["connectionCount"] == 2
    assert (await _statistics(managed, "port/amqp"))["connectionCount"] == 2
    assert "connectionCount" not in await _statistics(managed, "port/http")
    unknown = {"totalEnqueuedMessages", "totalExpiredMessages", "messagesIn", "messagesDropped", "messagesOut"}
    for path in (f"queue/{HOST}/q", f"exchange/{HOST}/e"):
        assert unknown.isdisjoint(await _statistics(managed, path)), path


async def test_of_single_objects(counting: Managed) -> None:
    """Where they are counted apart, they are told, lists are sorted by them, and each begins anew by itself."""
    client = await _use(counting)
    assert (await _statistics(counting, f"queue/{HOST}/q", _ENQUEUED))[_ENQUEUED] == 3
    told = await _statistics(counting, f"exchange/{HOST}/e", "messagesIn", "messagesDropped")
    assert (told["messagesIn"], told["messagesDropped"]) == (5, 2)
    told = await _statistics(counting, "connection", "messagesIn", "messagesOut")
    assert (told["messagesIn"], told["messagesOut"]) == (5, 3)
    await counting("PUT", f"queue/{HOST}/idle", {})
    listed = (await counting("GET", "queue?orderBy=totalEnqueuedMessages%20desc"))[1]
    assert [each["name"] for each in listed] == ["q", "idle"]
    await _reset(counting, client)


async def test_what_no_owner_has_told_of_is_not_there(managed: Managed) -> None:
    """Nothing is said of messages in a queue that no queue process counts: it may be full of them."""
    await managed("PUT", f"queue/{HOST}/q", {})
    told = await _statistics(managed, f"queue/{HOST}/q", "queueDepthMessages")
    assert told["queueDepthMessages"] == told["consumerCount"] == 0
    managed.mgmt._house.counts._table.members.clear()
    told = await _statistics(managed, f"queue/{HOST}/q")
    assert told == {"bindingCount": 0}
    listed = (await managed("GET", "queue?orderBy=queueDepthMessages,name"))[1]
    assert [each["name"] for each in listed] == ["q"]


async def _reset(counting: Managed, client: AmqpClient) -> None:
    """Begins at 0 and counts on, of that object alone, and /metrics goes on; nobody has changed the object."""
    queue, exchange = f"queue/{HOST}/q", f"exchange/{HOST}/e"
    for path in ("broker", queue, exchange):
        assert await counting("POST", f"{path}/resetStatistics", {}) == (200, None)
    assert (await _statistics(counting, queue, _ENQUEUED))[_ENQUEUED] == 0
    [connection] = (await counting("GET", "connection"))[1]
    assert connection["statistics"]["messagesIn"] == 5
    assert "lastUpdatedBy" not in (await counting("GET", queue))[1]
    client.publish(b"message", "k", exchange="e")
    await client.bodies(1)
    told = await _statistics(counting, exchange, "messagesIn", "messagesDropped")
    assert (told["messagesIn"], told["messagesDropped"]) == (1, 0)
    assert (await _statistics(counting, "broker", "messagesOut"))["messagesOut"] == 1
    status, page, _ = await counting.ask("/metrics?name[]=hopline_messages_received_total")
    assert status == 200
    assert [line.rpartition(" ")[2] for line in page.splitlines() if line.startswith("hopline_messages_rec")] == ["6.0"]


async def test_what_is_kept_of_connections_that_are_gone(counting: Managed) -> None:
    """Goes when something is kept of another one: nobody tells when they end."""
    client = await _use(counting)
    [gone] = (await counting("GET", "connection"))[1]
    path = f"connection/{HOST}/{gone['name']}"
    assert (await counting("POST", f"{path}/resetStatistics", {}))[0] == 200
    assert (await _statistics(counting, path))["messagesIn"] == 0
    await client.close()
    other = await counting.house.connect()
    names = [gone["name"]]
    while gone["name"] in names:
        names = [each["name"] for each in (await counting("GET", "connection"))[1]]
    await counting("POST", f"connection/{HOST}/{names[0]}/setContextVariable", {"name": "a", "value": "b"})
    kept = [key for key in counting.mgmt._house.overlays if key.startswith('["Connection"')]
    assert len(kept) == 1
    assert names[0] in kept[0]
    await other.close()
