"""Every operation of the management node, by clients of each protocol that the gateway speaks, at a running stack."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import amqp
import pika
import pytest
from pamqp import header as content_header

from tests.support.amqp_playbook import content
from tests.support.every_operation import run_every_operation
from tests.support.interop_pika import connected
from tests.support.older_client import OlderClient
from tests.support.proton_client import running
from tests.support.raw_amqp import declare_queue, method, short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.every_operation import Ask
    from tests.support.interop_address import BrokerAddress

NODE, DIRECT_REPLY = "$management", "amq.rabbitmq.reply-to"
LONG = 120  # seconds, of which none is needed
_METHOD, _DELIVER = 4, b"\x00\x3c\x00\x3c"


def _told(headers: dict[str, Any], body: bytes | str) -> tuple[int, Any]:
    return headers["statusCode"], json.loads(body) if body else None


@contextmanager
def _by_pika(broker: BrokerAddress) -> Iterator[Ask]:
    with connected(broker) as connection:
        channel, replies = connection.channel(), list[tuple[int, Any]]()
        channel.basic_consume(
            DIRECT_REPLY, lambda _channel, _method, its, body: replies.append(_told(its.headers, body)), auto_ack=True
        )

        def ask(operation: str, body: object = None, **properties: Any) -> tuple[int, Any]:
            its = pika.BasicProperties(content_type="application/json", reply_to=DIRECT_REPLY)
            its.headers = {"operation": operation, **properties}
            channel.basic_publish("", NODE, b"" if body is None else json.dumps(body).encode(), its)
            while not replies:
                connection.process_data_events(1)
            return replies.pop()

        yield ask


@contextmanager
def _by_py_amqp(broker: BrokerAddress) -> Iterator[Ask]:
    with amqp.Connection(f"{broker.host}:{broker.port}") as connection:
        channel, replies = connection.channel(), list[tuple[int, Any]]()
        own = channel.queue_declare(exclusive=True).queue
        channel.basic_consume(own, no_ack=True, callback=lambda each: replies.append(_told(each.headers, each.body)))

        def ask(operation: str, body: object = None, **properties: Any) -> tuple[int, Any]:
            said, headers = "" if body is None else json.dumps(body), {"operation": operation, **properties}
            its = {"content_type": "application/json", "reply_to": own, "application_headers": headers}
            channel.basic_publish(amqp.Message(said, **its), routing_key=NODE)
            while not replies:
                connection.drain_events(timeout=LONG)
            return replies.pop()

        yield ask


class _Older:
    """A client of AMQP 0-8 or 0-9, whose replies come to a queue of its own."""

    def __init__(self, client: OlderClient) -> None:
        self._client = client

    async def listens(self, queue: str) -> None:
        assert (await self._client.asks(declare_queue(queue)))[:_METHOD] == b"\x00\x32\x00\x0b"
        self._queue = queue
        consume = method(60, 20, b"\0\0", short(queue), short("replies"), b"\x02\0\0\0\0")
        assert (await self._client.asks(consume))[:_METHOD] == b"\x00\x3c\x00\x15"

    async def ask(self, operation: str, body: object, properties: dict[str, Any]) -> tuple[int, Any]:
        said = b"" if body is None else json.dumps(body).encode()
        its = {"content_type": "application/json", "reply_to": self._queue}
        written = content(1, said, routing_key=NODE, headers={"operation": operation, **properties}, **its)
        # The publish itself is another one in these versions: its ticket counts.
        self._client.send(method(60, 40, b"\x00\x01\x00" + short(NODE) + b"\0") + written[written.index(b"\xce") + 1 :])
        assert (await self._client.read())[:_METHOD] == _DELIVER
        head = content_header.ContentHeader()
        head.unmarshal(await self._client.read())
        told = b""
        while len(told) < head.body_size:
            told += await self._client.read()
        return _told(head.properties.headers, told)


def _by_older(version: bytes) -> Callable[[BrokerAddress], Any]:
    @contextmanager
    def by(broker: BrokerAddress) -> Iterator[Ask]:
        with asyncio.Runner() as runner:
            client = OlderClient(broker.port, version)
            runner.run(client.__aenter__())
            older = _Older(client)
            runner.run(older.listens(f"replies-{version.hex()}"))
            yield lambda operation, body=None, **properties: runner.run(older.ask(operation, body, properties))
            runner.run(client.close())

    return by


@contextmanager
def _by_proton(broker: BrokerAddress) -> Iterator[Ask]:
    with running() as proton:
        proton.do("connect", url=f"amqp://{broker.user}:{broker.password}@{broker.host}:{broker.port}")
        address = proton.do("receiver", name="replies", address=None, credit=10, settled=True)["address"]
        proton.do("sender", name="node", address=NODE)

        def ask(operation: str, body: object = None, **properties: Any) -> tuple[int, Any]:
            its = {"operation": operation, **properties}
            proton.do("send", name="node", id=1, body=body, reply_to=address, properties=its)
            reply = proton.do("receive", name="replies")
            return reply["properties"]["statusCode"], reply["body"]

        yield ask
        proton.do("close")


CLIENTS = {
    "0-8": _by_older(b"AMQP\x01\x01\x08\x00"),
    "0-9": _by_older(b"AMQP\x01\x01\x00\x09"),
    "0-9-1 by pika": _by_pika,
    "0-9-1 by py-amqp": _by_py_amqp,
    "1.0 by qpid-proton": _by_proton,
}


@pytest.mark.parametrize("client", CLIENTS)
def test_every_operation(broker: BrokerAddress, name: str, client: str) -> None:
    """Is answered as in the inventory, whichever protocol it is asked by."""
    with CLIENTS[client](broker) as ask:
        run_every_operation(ask, name)
