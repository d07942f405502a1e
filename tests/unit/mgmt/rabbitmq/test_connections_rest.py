"""Connections, channels, totals and health over RabbitMQ's API, at a whole broker."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.unit.mgmt.rabbitmq.conftest import Asked


async def _connections(asked: Asked, count: int) -> Any:
    """A gateway says a moment after it began where it is."""
    for _ in range(100):
        if len(found := await asked.get("connections")) == count:
            return found
        await asyncio.sleep(0.05)
    return found


async def test_connections_and_channels(asked: Asked) -> None:
    """Connections with user, address, virtual host and channels; one that is closed is told why, and gone."""
    client = await asked.house.connect()
    await client.declare("q")
    await client.consume("q", "mine")
    [told] = await _connections(asked, 1)
    wanted = {"user": "guest", "vhost": "/", "peer_host": "127.0.0.1", "channels": 1, "state": "running"}
    assert {name: told[name] for name in wanted} == wanted
    assert told["node"] == f"gateway-{told['name'].partition('.')[0]}"
    assert await asked.get(f"connections/{told['name']}") == told
    [channel] = await asked.get(f"connections/{told['name']}/channels")
    assert (channel["number"], channel["consumer_count"], channel["confirm"]) == (1, 1, False)
    assert await asked.get("channels") == await asked.get("vhosts/%2F/channels") == [channel]
    assert await asked.get(f"channels/{told['name']}%20(1)") == channel
    [consumer] = await asked.get("consumers")
    assert consumer["channel_details"]["connection_name"] == told["name"]
    assert await asked("DELETE", f"connections/{told['name']}") == (204, None)
    await _connections(asked, 0)
    assert await asked("DELETE", f"connections/{told['name']}") == (
        404,
        {"error": "not_found", "reason": f"no connection '{told['name']}'"},
    )
    assert (await asked("GET", "channels/none"))[0] == (await asked("GET", "connections/x/channels"))[0] == 404


async def test_whose(asked: Asked) -> None:
    """A user who does not observe sees, and closes, only its own connections, and sees only consumers on those."""
    client = await asked.house.connect()
    await client.declare("q")
    await client.consume("q", "mine")
    [told] = await _connections(asked, 1)
    await asked("PUT", "users/anna", {"password": "secret", "tags": "management"})
    await asked("PUT", "users/bert", {"password": "secret", "tags": "monitoring"})
    await asked("PUT", "permissions/%2F/anna", {"configure": "", "write": "", "read": ".*"})
    assert await asked.get("connections", "anna:secret") == []
    assert await asked.get("consumers", "anna:secret") == await asked.get("consumers/%2F", "anna:secret") == []
    assert [each["consumer_tag"] for each in await asked.get("consumers", "bert:secret")] == ["mine"]
    assert (await asked("DELETE", f"connections/{told['name']}", user="anna:secret"))[0] == 404
    assert await asked.get("connections", "bert:secret") == [told]
    assert (await asked("DELETE", f"connections/{told['name']}", user="bert:secret"))[0] == 401


async def test_overview(asked: Asked) -> None:
    """Totals of what the user sees; where gateways listen is for users who observe."""
    client = await asked.house.connect()
    await client.declare("q", durable=True)
    client.publish(b"m", "q")
    await _connections(asked, 1)
    told = await asked.get("overview")
    assert told["queue_totals"] == {"messages": 1, "messages_ready": 1, "messages_unacknowledged": 0}
    assert told["object_totals"] == {"connections": 1, "channels": 1, "consumers": 0, "exchanges": 6, "queues": 1}
    assert (told["product_name"], told["cluster_name"]) == ("Hopline", "hopline")
    assert {each["port"] for each in told["listeners"]} == {asked.house.ports[0]}
    assert {each["name"] for each in told["exchange_types"]} == {"direct", "fanout", "headers", "topic"}
    await asked("PUT", "users/anna", {"password": "secret", "tags": "management"})
    hers = await asked.get("overview?columns=object_totals.queues,listeners", "anna:secret")
    assert hers == {"object_totals": {"queues": 0}, "listeners": []}
    nodes = await asked.get("nodes")
    assert {each["role"] for each in nodes} == {"gateway", "queue", "router"}
    assert await asked.get(f"nodes/{nodes[0]['name']}") == nodes[0]
    assert await asked.get("cluster-name") == {"name": "hopline"}


async def test_health(asked: Asked) -> None:
    """What can be asked of health is ok, or fails with why; a message gets through."""
    await _connections(asked, 0)
    for path in ("alarms", "local-alarms", "virtual-hosts"):
        assert (await asked.get(f"health/checks/{path}")) == {"status": "ok"}
    port = asked.house.ports[0]
    for _ in range(100):
        if (await asked("GET", f"health/checks/port-listener/{port}"))[0] == 200:
            break
    assert await asked.get(f"health/checks/port-listener/{port}") == {"status": "ok", "port": port}
    assert (await asked("GET", "health/checks/port-listener/1")) == (
        503,
        {"status": "failed", "reason": "No active listener", "missing": 1, "ports": [port]},
    )
    assert await asked.get("aliveness-test/%2F") == {"status": "ok"}
    assert (await asked.get("queues/%2F/aliveness-test?columns=messages")) == {"messages": 0}
    while asked.house.queues:
        await asked.house.queues.popitem()[1].stop()
    for _ in range(100):  # a good report is kept for a moment
        status, told = await asked("GET", "health/checks/virtual-hosts")
        if status == 503:
            break
        await asyncio.sleep(0.05)
    assert (status, told["status"]) == (503, "failed")
    assert "queue: 0 of 8 partitions have an owner" in told["reason"]
