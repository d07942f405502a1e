"""The node of the virtual host `$management`: it is about the whole broker."""

from __future__ import annotations

import json
from typing import Any

from services.common.authentication.principal import Principal
from tests.support.managing import Asking
from tests.unit.mgmt.node.conftest import Managed

PREFIX = "org.apache.qpid"
BY = {"index": "object-path"}
MORE = {"Broker", "Port", "User", "VirtualHostNode", "KeyStore", "BrokerLogInclusionRule"}


async def test_all_categories(managed: Managed) -> None:
    """Are there, and only there; the broker is at the empty path, and neither made nor deleted."""
    ask = Asking(managed.client, "$management")
    here, elsewhere = [set((await each.itself("GET-TYPES")).body) for each in (ask, managed.ask)]
    assert here - elsewhere >= {f"{PREFIX}.{name}" for name in MORE}
    assert elsewhere < here
    told = await ask("READ", type=f"{PREFIX}.Broker", key="", **BY)
    assert (told.status, told.body["object-path"]) == (200, "")
    assert (await ask("CREATE", {"object-path": "x"}, type=f"{PREFIX}.Broker")).status == 501
    assert (await ask("DELETE", type=f"{PREFIX}.Broker", key="", **BY)).status == 501


async def test_changes(managed: Managed) -> None:
    """As over REST, by paths from below the broker on; a query has what is in every virtual host, and says in which."""
    ask = Asking(managed.client, "$management")
    assert (await ask("CREATE", {"object-path": "v/v"}, type=f"{PREFIX}.VirtualHost")).status == 201
    assert (await ask("CREATE", {"object-path": "v/v/q"}, type=f"{PREFIX}.Queue")).status == 201
    assert (await managed.ask("CREATE", {"name": "q"}, type=f"{PREFIX}.Queue")).status == 201
    found = await ask.itself("QUERY", entityType=f"{PREFIX}.Queue")
    rows = [dict(zip(found.body["attributeNames"], each, strict=True)) for each in found.body["results"]]
    assert {(each["virtualhost"], each["object-path"]) for each in rows} == {("v", "v/v/q"), ("/", r"\//\//q")}
    said: dict[str, Any] = {"object-path": "internal/anna", "password": "hunter2", "tags": ["monitoring"]}
    made = await ask("CREATE", said, type=f"{PREFIX}.User")
    assert (made.status, "hunter2" in str(made)) == (201, False)
    anna = Principal("anna", "internal", tags=frozenset({"monitoring"}))
    assert (await ask("READ", who=anna, type=f"{PREFIX}.Queue", key="v/v/q", **BY)).status == 200
    for operation in ("READ", "DELETE"):
        assert (await ask(operation, who=anna, type=f"{PREFIX}.User", key="internal/anna", **BY)).status == 403
    assert (await ask("DELETE", type=f"{PREFIX}.VirtualHost", key="v/v", **BY)).status == 204


async def test_of_a_client(managed: Managed) -> None:
    """Who is connected to that virtual host is answered by it; a message is published by no such way."""
    assert (await managed.ask("CREATE", {"object-path": "x"}, type=f"{PREFIX}.VirtualHost")).status == 501
    path = "/api/latest/virtualhost/$management/$management"
    assert (await managed.rest(path, "guest:guest", "PUT", {}))[0] == 201
    client = await managed.house.connect(virtual_host="$management")
    await client.consume("amq.rabbitmq.reply-to", no_ack=True)
    headers = {"operation": "READ", "type": f"{PREFIX}.Port", "index": "object-path", "key": "amqp"}
    said = {"reply_to": "amq.rabbitmq.reply-to", "content_type": "application/json", "headers": headers}
    client.publish(b"{}", "$management", **said)
    [body] = await client.bodies(1)
    assert json.loads(body)["name"] == "amqp"
    message = {"message": {"address": "amq.topic"}}
    told = await Asking(managed.client, "$management")(
        "publishMessage", message, type=f"{PREFIX}.VirtualHost", key=r"\//\/", **BY
    )
    assert told.status == 501
