"""The management node, used by clients of other projects: qpid-proton (1.0) and pika (0-9-1)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pika
import pytest

from tests.support.proton_client import Proton, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pika.adapters.blocking_connection import BlockingChannel

    from tests.support.interop_address import BrokerAddress

NODE = "$management"
SELF = {"type": "org.amqp.management", "identity": "self"}
QUEUE, EXCHANGE = "org.apache.qpid.Queue", "org.apache.qpid.Exchange"


class Asking:
    """qpid-proton at the node, with its replies at an address."""

    def __init__(self, proton: Proton, reply_to: str) -> None:
        self._proton = proton
        self._reply_to = reply_to
        self._number = 0

    def __call__(self, operation: str, body: object = None, **properties: Any) -> tuple[int, Any]:
        """Status and body of what comes back, by the number that it was asked with."""
        self._number += 1
        properties = {name.replace("_", "-"): value for name, value in properties.items()}
        outcome = self._proton.do(
            "send",
            name="node",
            id=self._number,
            body=body,
            reply_to=self._reply_to,
            properties={"operation": operation, **properties},
        )
        assert outcome == {"outcome": "accepted"}
        reply = self._proton.do("receive", name="replies")
        assert reply["correlation"] == self._number
        assert reply["properties"]["statusDescription"]
        return reply["properties"]["statusCode"], reply["body"]


@pytest.fixture(params=["a queue of its own", "the node"])
def ask(broker: BrokerAddress, request: pytest.FixtureRequest) -> Iterator[Asking]:
    """Replies come to a dynamic source, or by a link from the node whose target is named."""
    with running() as proton:
        proton.do("connect", url=f"amqp://{broker.user}:{broker.password}@{broker.host}:{broker.port}")
        if request.param == "the node":
            proton.do("receiver", name="replies", address=NODE, credit=10, settled=True, target="mine")
            address = "mine"
        else:
            address = proton.do("receiver", name="replies", address=None, credit=10, settled=True)["address"]
        proton.do("sender", name="node", address=NODE)
        yield Asking(proton, address)
        proton.do("close")


def test_a_queue_by_proton(ask: Asking, channel: BlockingChannel, name: str) -> None:
    """Is made, bound, found, told of, and deleted, by maps that proton writes and reads; clients of 0-9-1 meet it."""
    status, made = ask(
        "CREATE", {"object-path": name, "maximumQueueDepthMessages": 9, "overflowPolicy": "RING"}, type=QUEUE
    )
    assert (status, made["type"], made["maximumQueueDepthMessages"]) == (201, "org.apache.qpid.StandardQueue", 9)
    by = {"index": "object-path", "key": "amq.direct"}
    assert ask("bind", type=EXCHANGE, destination=name, bindingKey=name, **by) == (200, True)
    channel.basic_publish("amq.direct", name, b"m")
    names = {"attributeNames": ["name", "identity"]}
    status, told = ask("QUERY", names, entityType=QUEUE, **SELF)
    assert [name, made["identity"]] in told["results"]
    assert ask("READ", type=QUEUE, identity=made["identity"]) == (200, made)
    status, told = ask("UPDATE", {"description": "of a test"}, type=QUEUE, identity=made["identity"])
    assert (status, told["description"]) == (200, "of a test")
    assert ask("clearQueue", type=QUEUE, identity=made["identity"])[0] == 200
    assert ask("DELETE", type=QUEUE, identity=made["identity"]) == (204, {})
    assert ask("DELETE", type=QUEUE, name=name)[0] == 404


def test_what_there_can_be_by_proton(ask: Asking) -> None:
    """Types, attributes and operations are maps; for unknown ones the reply says so."""
    status, types = ask("GET-TYPES", **SELF)
    assert (status, types["org.apache.qpid.TopicExchange"]) == (200, [EXCHANGE])
    assert "bindings" in ask("GET-ATTRIBUTES", **SELF)[1][EXCHANGE]
    assert ask("GET-OPERATIONS", **SELF)[1][EXCHANGE]["unbind"] == ["destination", "bindingKey"]
    assert ask("GET-MGMT-NODES", **SELF) == (200, [])
    assert ask("REGISTER", **SELF) == (501, None)


def test_by_pika(channel: BlockingChannel, name: str) -> None:
    """As the README says: in JSON, by a direct reply-to."""
    replies: list[tuple[int, str, Any]] = []

    def reply(_channel: object, _method: object, properties: pika.BasicProperties, body: bytes) -> None:
        status = properties.headers["statusCode"]
        replies.append((status, properties.correlation_id, json.loads(body) if body else None))

    channel.basic_consume("amq.rabbitmq.reply-to", reply, auto_ack=True)

    def asks(operation: str, body: object = None, **headers: Any) -> tuple[int, Any]:
        properties = pika.BasicProperties(
            reply_to="amq.rabbitmq.reply-to",
            correlation_id=operation,
            content_type="application/json",
            headers={"operation": operation, "type": QUEUE, **headers},
        )
        channel.basic_publish("", NODE, json.dumps(body) if body else b"", properties)
        before = len(replies)
        while len(replies) == before:
            channel.connection.process_data_events(1)
        status, correlation, told = replies[-1]
        assert correlation == operation
        return status, told

    status, made = asks("CREATE", {"name": name, "durable": True})
    assert (status, made["name"]) == (201, name)
    assert channel.queue_declare(name, durable=True, passive=True).method.message_count == 0
    status, told = asks("getStatistics", index="object-path", key=name, statistics=["bindingCount"])
    assert (status, told) == (200, {"bindingCount": 0})
    assert asks("DELETE", name=name) == (204, {})
    assert asks("READ", name=name)[0] == 404
