"""Objects over the management node, by vectors of Broker-J's own tests (AmqpManagementTest) and its source."""

from __future__ import annotations

from tests.unit.mgmt.node.conftest import Managed

QUEUE, EXCHANGE, HOST = "org.apache.qpid.Queue", "org.apache.qpid.Exchange", "org.apache.qpid.VirtualHost"


async def test_a_queue(managed: Managed) -> None:
    """Created with its object path (201), not twice (409), read by its identity, updated, deleted (204) by its path,
    and then not found.
    """
    ask = managed.ask
    body = {"name": "a/q", "object-path": r"a\/q", "qpid-type": "priority", "priorities": 7}
    status, description, made = await ask("CREATE", body, type=QUEUE)
    assert (status, description) == (201, "Created")
    assert (made["type"], made["qpid-type"]) == ("org.apache.qpid.PriorityQueue", "priority")
    assert (made["object-path"], made["name"], made["priorities"]) == (r"a\/q", "a/q", 7)
    assert (await ask("CREATE", body, type=QUEUE)).status == 409
    status, _, told = await ask("READ", type=QUEUE, identity=made["identity"])
    assert (status, told) == (200, made)
    assert (await managed.rest("/api/latest/queue/%252F/%252F/a%252Fq", "guest:guest"))[1]["id"] == made["identity"]
    status, _, told = await ask("UPDATE", {**made, "description": "x"}, type=QUEUE, identity=made["identity"])
    assert (status, told["description"]) == (200, "x")
    assert (await ask("DELETE", type=QUEUE, index="object-path", key=r"a\/q"))[:] == (204, "No Content", {})
    assert (await ask("DELETE", type=QUEUE, index="object-path", key=r"a\/q")).status == 404
    assert (await ask("READ", type=QUEUE, identity=made["identity"])).status == 404


async def test_read(managed: Managed) -> None:
    """As it was set, or with all that is known of it, as the body says, or a property; by its type alone where it is of
    that; the virtual host is at the empty path.
    """
    ask, by = managed.ask, {"index": "object-path", "key": "amq.topic"}
    assert (await ask("READ", type=EXCHANGE, **by)).body.keys() == {
        "identity", "object-path", "type", "qpid-type", "name",
    }  # fmt: skip
    whole = (await ask("READ", type=EXCHANGE, actuals="false", **by)).body
    assert (whole["state"], whole["bindings"], whole["type"]) == ("ACTIVE", [], "org.apache.qpid.TopicExchange")
    for actuals in (False, "false"):
        assert (await ask("READ", {"actuals": actuals}, type=EXCHANGE, **by)).body == whole
    assert (await ask("READ", {"actuals": True}, type=EXCHANGE, **by)).body != whole
    assert (await ask("READ", type="org.apache.qpid.TopicExchange", **by)).status == 200
    assert (await ask("READ", type="org.apache.qpid.DirectExchange", **by)).status == 404
    assert (await ask("READ", type=EXCHANGE, name="amq.topic")).status == 200
    host = await ask("READ", type=HOST, index="object-path", key="")
    assert (host.status, host.body["name"], host.body["object-path"]) == (200, "/", "")


async def test_types_and_paths_of_what_is_created(managed: Managed) -> None:
    """By AMQP's type, by qpid-type, or by the class's own; an exchange without any is none (400); a name does where
    nothing more is needed; what cannot be is told.
    """
    ask = managed.ask
    assert (await ask("CREATE", {"object-path": "e"}, type=EXCHANGE)).status == 400
    made = await ask("CREATE", {"object-path": "e"}, type="org.apache.qpid.FanoutExchange")
    assert (made.status, made.body["qpid-type"]) == (201, "fanout")
    assert (await ask("CREATE", {}, type=QUEUE, name="q")).body["object-path"] == "q"
    assert (await ask("CREATE", {"name": "q2"}, type="org.apache.qpid.StandardQueue")).status == 201
    for body in (None, [], {}, {"name": "x", "identity": "1"}, {"name": "x", "nothing": 1}, {"object-path": "x/y/"}):
        assert (await ask("CREATE", body, type=QUEUE)).status in {400, 404}, body
    assert [(await ask("CREATE", {"name": "x"}, type=f"org.apache.qpid.{each}")).status for each in (
        "Consumer", "VirtualHost", "Connection", "Port",
    )] == [501, 501, 501, 404]  # fmt: skip


async def test_update(managed: Managed) -> None:
    """What is fixed is refused as Broker-J does (403), or named (400); what is deleted by its state is gone."""
    ask, by = managed.ask, {"type": QUEUE, "index": "object-path", "key": "q"}
    await ask("CREATE", {"name": "q"}, type=QUEUE)
    other = "00000000-0000-0000-0000-000000000000"
    assert (await ask("UPDATE", {"identity": other}, **by))[:2] == (403, "Cannot change the value of 'identity'")
    assert (await ask("UPDATE", {"virtualhost": "x"}, **by))[:2] == (403, "Cannot change the value of 'virtualhost'")
    assert "fixed" in (await ask("UPDATE", {"object-path": "q2"}, **by)).description
    assert (await ask("UPDATE", "text", **by)).status == 400
    assert (await ask("UPDATE", {}, type=QUEUE, index="object-path", key="none")).status == 404
    assert (await ask("UPDATE", {"desiredState": "DELETED"}, **by)).status == 204
    assert (await ask("READ", **by)).status == 404
    host = {"type": HOST, "index": "object-path", "key": ""}
    assert (await ask("UPDATE", {"description": "mine"}, **host)).body["description"] == "mine"
    assert (await ask("UPDATE", {"desiredState": "DELETED"}, **host)).status == 501
    assert (await ask("DELETE", **host)).status == 501


async def test_operations(managed: Managed) -> None:
    """Arguments are properties, lists and maps of them JSON, or are in the body; instrumentation's are none."""
    ask, exchange = managed.ask, {"type": EXCHANGE, "index": "object-path", "key": "amq.direct"}
    await ask("CREATE", {"name": "q"}, type=QUEUE)
    binding = {"destination": "q", "bindingKey": "k", "arguments": '{"a": 1}', "traceparent": "00-1"}
    assert (await ask("bind", **exchange, **binding))[:] == (200, "OK", True)
    assert (await ask("bind", {"destination": "q", "bindingKey": "k"}, **exchange)).body is False
    client = await managed.house.connect()
    client.publish(b"m", "k", exchange="amq.direct")
    queue = {"type": QUEUE, "index": "object-path", "key": "q"}
    told = await ask("getStatistics", **queue, statistics='["bindingCount"]')
    assert told.body == {"bindingCount": 1}
    assert (await ask("clearQueue", **queue)).body == 1
    assert (await ask("setContextVariable", **queue, name="a", value="b"))[:] == (200, "OK", None)
    assert (await ask("bind", **exchange)).status == 400
    assert (await ask("restart", type=HOST, index="object-path", key=""))[:2] == (501, "Not implemented")
    assert (await ask("getStatistics", type=QUEUE, index="object-path", key="none")).status == 404
    assert (await ask("getStatistics", type=QUEUE, index="number", key="1"))[:2] == (400, "Unknown index: 'number'")
    assert (await ask("getStatistics", type=QUEUE)).description == "Either identity or index must be specified"


async def test_what_makes_no_sense(managed: Managed) -> None:
    """Is answered as well: a type or an operation that there is not, and what is no text."""
    ask = managed.ask
    assert (await ask("READ", type="org.apache.qpid.Port", name="amqp"))[:2] == (
        404, "Unknown type org.apache.qpid.Port",
    )  # fmt: skip
    assert (await ask("READ", name="x")).status == 404
    assert (await ask("", type=QUEUE)).status == 400
    assert (await ask("READ", type=7)).status == 400
    assert (await ask("READ", type=QUEUE, identity="no uuid")).status == 400
    assert (await ask.itself("REGISTER")).status == (await ask.itself("DEREGISTER")).status == 501
