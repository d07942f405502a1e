"""`publishMessage` of a virtual host, at a whole broker."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from services.common.clients.mgmt import MgmtClient
from tests.support.managing import Asking
from tests.unit.mgmt.tree.conftest import HOST, Managed

_PATH = f"virtualhost/{HOST}/publishMessage"


async def _publish(managed: Managed, user: str = "guest:guest", **message: Any) -> Any:
    return await managed("POST", _PATH, {"message": message}, user)


async def _got(managed: Managed, queue: str = "q") -> Any:
    body = {"count": 9, "ackmode": "ack_requeue_false", "encoding": "auto"}
    status, told, _ = await managed.ask(f"/api/queues/%2F/{queue}/get", "guest:guest", "POST", body)
    assert status == 200, told
    return told


async def test_a_message(managed: Managed) -> None:
    """Comes to the queue of that name as the caller's, with all that was said of it."""
    await managed("PUT", f"queue/{HOST}/q", {})
    said = {"messageId": "m", "priority": 4, "persistent": True, "headers": {"h": 1}, "content": "grüße"}
    assert await _publish(managed, address="q", **said) == (200, 1)
    [told] = await _got(managed)
    properties = told["properties"]
    assert abs(properties.pop("timestamp") - 1_700_000_000) < 2_000_000_000
    assert properties == {
        "content_type": "text/plain",
        "delivery_mode": 2,
        "headers": {"h": 1},
        "message_id": "m",
        "priority": 4,
        "user_id": "guest",
    }
    assert (told["payload"], told["exchange"], told["routing_key"]) == ("grüße", "", "q")


async def test_addresses(managed: Managed) -> None:
    """An exchange, with its name as key, or with the key behind a slash; a queue; what leads nowhere is for none."""
    for name in ("q", "r", "e%252Fx"):
        await managed("PUT", f"queue/{HOST}/{name}", {})
    for name in ("q", "r"):
        await managed("POST", f"exchange/{HOST}/amq.fanout/bind", {"destination": name, "bindingKey": ""})
    await managed("PUT", f"exchange/{HOST}/e", {"type": "topic"})
    await managed("POST", f"exchange/{HOST}/e/bind", {"destination": "q", "bindingKey": "eu.#"})
    addresses = ("amq.fanout", "amq.fanout/k", "e/eu.new", "e/x", "e", "none", "none/k")
    told = [(await _publish(managed, address=each, content=each))[1] for each in addresses]
    assert told == [2, 2, 1, 1, 0, 0, 0]
    there = [(each["exchange"], each["routing_key"]) for each in await _got(managed)]
    assert there == [("amq.fanout", "amq.fanout"), ("amq.fanout", "k"), ("e", "eu.new")]


async def test_who_may(managed: Managed) -> None:
    """Who may publish there, by the headers that are keys too; what is wrong is told to nobody else."""
    await managed("PUT", f"queue/{HOST}/q", {})
    anna: dict[str, Any] = {"password": "secret", "tags": "management"}
    assert (await managed.ask("/api/users/anna", "guest:guest", "PUT", anna))[0] == 201
    assert (await _publish(managed, "anna:secret", address="q"))[0] == 403
    assert (await _publish(managed, "anna:secret", nothing=1))[0] == 403
    permissions = {"configure": "", "write": "^amq.(direct|topic)$", "read": ""}
    await managed.ask("/api/permissions/%2F/anna", "guest:guest", "PUT", permissions)
    status, told = await _publish(managed, "anna:secret", address="q")
    assert (status, "write access to exchange 'amq.default'" in str(told)) == (403, True)
    assert (await _publish(managed, "anna:secret", address="amq.direct", content="x")) == (200, 0)
    assert (await _publish(managed, "anna:secret", nothing=1))[0] == 422
    topic = {"exchange": "amq.topic", "write": "^eu", "read": ""}
    await managed.ask("/api/topic-permissions/%2F/anna", "guest:guest", "PUT", topic)
    assert (await _publish(managed, "anna:secret", address="amq.topic/eu.x"))[0] == 200
    assert (await _publish(managed, "anna:secret", address="amq.topic/us.x"))[0] == 403
    assert (await _publish(managed, "anna:secret", address="amq.topic/eu.x", headers={"CC": ["us.x"]}))[0] == 403


async def test_refused(managed: Managed) -> None:
    """A full queue (409), what is no message, or one that AMQP cannot hold (422), a virtual host that is none (404)."""
    arguments = {"maximumQueueDepthMessages": 1, "overflowPolicy": "REJECT"}
    await managed("PUT", f"queue/{HOST}/q", arguments)
    assert (await _publish(managed, address="q")) == (200, 1)
    status, told = await _publish(managed, address="q")
    assert (status, "refuses" in told["errorMessage"]) == (409, True)
    status, told = await managed("POST", _PATH, {})
    assert (status, "'message' of publishMessage: it is mandatory" in told["errorMessage"]) == (422, True)
    assert (await _publish(managed, address="q", content=1))[0] == 422
    assert (await _publish(managed, address="q", headers={"h" * 300: 1}))[0] == 422
    assert (await managed("GET", _PATH))[0] == 405
    assert (await managed("POST", "virtualhost/x/x/publishMessage", {"message": {"address": "q"}}))[0] == 404


async def test_not_by_an_older_gateway(managed: Managed) -> None:
    """Which would not publish what it is told to: nothing is published, and that is said."""
    await managed("PUT", f"queue/{HOST}/q", {})
    async with MgmtClient(managed.house.address_of("mgmt")) as client:
        host = {"type": "org.apache.qpid.VirtualHost", "index": "object-path", "key": ""}
        told = await Asking(client)("publishMessage", {"message": {"address": "q"}}, **host)
    assert (told.status, told.description.partition(":")[0]) == (501, "publishMessage is for HTTP here")
    assert await _got(managed) == []


async def _by_node(client: Any, message: dict[str, Any]) -> tuple[int, str, str]:
    """Status, description and body of what the management node answers."""
    headers = {"operation": "publishMessage", "type": "org.apache.qpid.VirtualHost", "index": "object-path", "key": ""}
    said: dict[str, Any] = {"headers": headers, "reply_to": "replies", "content_type": "application/json"}
    client.publish(json.dumps({"message": message}).encode(), "$management", **said)
    while (got := await client.get("replies")) is None:
        await asyncio.sleep(0.01)
    told = got.properties.headers
    return told["statusCode"], told["statusDescription"], got.body.decode()


async def test_over_amqp(managed: Managed) -> None:
    """It is published by the gateway as the client's own, and confirmed; what refuses it is told."""
    client = await managed.house.connect()
    await client.declare("replies")
    await client.declare("q")
    await client.declare("full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    assert await _by_node(client, {"address": "q", "content": "text", "messageId": "m"}) == (200, "OK", "1")
    got = await client.get("q")
    assert (got.body, got.properties.message_id, got.properties.user_id) == (b"text", "m", "guest")
    assert await _by_node(client, {"address": "nowhere"}) == (200, "OK", "0")
    assert (await _by_node(client, {"address": "full"}))[0] == 200
    status, why, _ = await _by_node(client, {"address": "full"})
    assert (status, why) == (409, "a queue refuses it: it is full, or gone")
    assert (await _by_node(client, {"address": "q", "what": 1}))[0] == 400
    client.publish(b"m", "q")  # the client's own session is as it was
    while (got := await client.get("q")) is None:
        await asyncio.sleep(0.01)
    assert got.body == b"m"
