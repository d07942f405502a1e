"""Every operation of a management node, with what it is answered, whatever protocol it is asked by."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

SELF = {"type": "org.amqp.management", "identity": "self"}
QUEUE, EXCHANGE = "org.apache.qpid.Queue", "org.apache.qpid.Exchange"
DIRECT, STANDARD = "org.apache.qpid.DirectExchange", "org.apache.qpid.StandardQueue"
HOST = "org.apache.qpid.VirtualHost"

Ask = Callable[..., tuple[int, Any]]
"""`ask(operation, body, **properties)`: status and body of the reply."""


def run_every_operation(ask: Ask, name: str) -> None:
    """Those of the node itself, of objects, and those that their classes declare; and what is refused."""
    _of_the_node(ask)
    made = _of_objects(ask, name)
    _declared(ask, name, made)
    _refused(ask, name)
    assert ask("DELETE", type=QUEUE, identity=made["identity"])[0] == 204
    assert ask("READ", type=QUEUE, identity=made["identity"])[0] == 404


def _of_the_node(ask: Ask) -> None:
    status, types = ask("GET-TYPES", **SELF)
    assert (status, types[DIRECT], types[STANDARD]) == (200, [EXCHANGE], [QUEUE])
    status, attributes = ask("GET-ATTRIBUTES", **SELF, entityType=QUEUE)
    assert status == 200
    assert {"maximumQueueDepthMessages", "durable"} <= set(attributes[QUEUE])
    status, operations = ask("GET-OPERATIONS", **SELF, entityType=EXCHANGE)
    assert (status, operations[EXCHANGE]["unbind"]) == (200, ["destination", "bindingKey"])
    assert ask("GET-MGMT-NODES", **SELF)[0] == 200
    query = {"attributeNames": ["name", "type"]}
    status, told = ask("QUERY", query, entityType=DIRECT, offset=0, count=1, **SELF)
    assert (status, told["attributeNames"], len(told["results"])) == (200, ["name", "type"], 1)


def _of_objects(ask: Ask, name: str) -> dict[str, Any]:
    """The queue that is left."""
    wanted = {"object-path": name, "durable": True, "maximumQueueDepthMessages": 9, "overflowPolicy": "RING"}
    status, made = ask("CREATE", wanted, type=QUEUE)
    assert (status, made["type"], made["maximumQueueDepthMessages"]) == (201, STANDARD, 9)
    assert ask("READ", type=QUEUE, identity=made["identity"]) == (200, made)
    by = {"type": STANDARD, "index": "object-path", "key": name}
    assert ask("READ", **by) == (200, made)
    status, told = ask("UPDATE", {"maximumQueueDepthMessages": 10, "description": "of a test"}, **by)
    assert (status, told["maximumQueueDepthMessages"], told["description"]) == (200, 10, "of a test")
    exchange = {"type": DIRECT, "index": "object-path", "key": f"{name}-x"}
    assert ask("CREATE", {"name": f"{name}-x"}, type=DIRECT)[0] == 201
    assert ask("READ", **exchange)[1]["name"] == f"{name}-x"
    assert ask("DELETE", **exchange)[0] == 204
    assert ask("READ", **exchange)[0] == 404
    return dict(made)


def _declared(ask: Ask, name: str, made: dict[str, Any]) -> None:
    queue = {"type": QUEUE, "identity": made["identity"]}
    exchange = {"type": EXCHANGE, "index": "object-path", "key": "amq.direct"}
    assert ask("bind", **exchange, destination=name, bindingKey=name) == (200, True)
    message = {"address": f"amq.direct/{name}", "content": "said"}
    published = ask("publishMessage", {"message": message}, type=HOST, index="object-path", key="")
    assert published == (200, 1), published
    statistics = ask("getStatistics", **queue, statistics=json.dumps(["bindingCount"]))
    assert statistics == (200, {"bindingCount": 1})
    assert ask("setContextVariable", {"name": "of", "value": "a test"}, **queue)[0] == 200
    assert ask("removeContextVariable", {"name": "of"}, **queue) == (200, "a test")
    assert ask("getMessageInfo", **queue)[0] == 200
    assert ask("clearQueue", **queue)[0] == 200
    assert ask("getMessageInfo", **queue) == (200, [])
    assert ask("unbind", **exchange, destination=name, bindingKey=name) == (200, True)


def _refused(ask: Ask, name: str) -> None:
    """As the inventory has it: 400, 404, 409, 501."""
    by: dict[str, str] = {"type": QUEUE, "index": "object-path", "key": name}
    cases: Sequence[tuple[int, str, Any, dict[str, str]]] = (
        (409, "CREATE", {"name": name}, {"type": QUEUE}),
        (400, "CREATE", {"name": f"{name}-y", "priorities": "many"}, {"type": QUEUE}),
        (400, "CREATE", {"name": f"{name}-y", "odd": 1}, {"type": QUEUE}),
        (400, "UPDATE", {"durable": False}, by),
        (400, "bind", None, {"type": EXCHANGE, "index": "object-path", "key": "amq.direct"}),
        (404, "READ", None, {**by, "key": f"{name}-gone"}),
        (404, "READ", None, {"type": "org.apache.qpid.Nothing", "identity": "x"}),
        (501, "REGISTER", None, SELF),
        (501, "explode", None, by),
    )
    for status, operation, body, properties in cases:
        assert (operation, ask(operation, body, **properties)[0]) == (operation, status)
