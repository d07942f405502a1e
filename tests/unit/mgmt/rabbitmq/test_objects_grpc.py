"""What the command line asks mgmt about virtual hosts, at a whole broker."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pamqp import commands

from services.common.audit.acting import act_for
from services.common.clients.objects import ObjectsClient, Row
from services.common.errors import BrokerError, NotFound, PreconditionFailed, ResourceLocked, SyntaxFault
from services.mgmt.by_hand.client import Channel, Got
from services.mgmt.rabbitmq import lists
from services.rpc import objects_pb2 as pb
from tests.unit.mgmt.rabbitmq.conftest import Asked
from tests.unit.mgmt.rabbitmq.test_connections_rest import _connections
from tests.unit.mgmt.test_providers import audited

WHO = "anna at the command line of a machine"


@pytest.fixture
async def client(asked: Asked) -> AsyncIterator[ObjectsClient]:
    act_for(WHO)
    async with ObjectsClient(asked.house.address_of("mgmt")) as connected:
        yield connected


async def rows(client: ObjectsClient, kind: pb.Kind.ValueType, **more: Any) -> list[Row]:
    return [row async for page in client.list(pb.ListRequest(kind=kind, **more)) for row in page.rows]


async def test_virtual_hosts(asked: Asked, client: ObjectsClient) -> None:
    """Are listed with what is said of them, which a request changes that is there; the router creates and deletes."""
    await asked("PUT", "vhosts/shop", {"description": "one"})
    assert not await client.declare(pb.VIRTUAL_HOST, "shop", "shop", {"description": None, "tags": ["a"]})
    default = {"name": "/", "description": "", "tags": []}
    assert await rows(client, pb.VIRTUAL_HOST) == [default, {"name": "shop", "description": "one", "tags": ["a"]}]
    with pytest.raises(NotFound, match="no vhost 'gone'"):
        await client.declare(pb.VIRTUAL_HOST, "gone", "gone", {"tags": ["a"]})
    with pytest.raises(SyntaxFault, match="tags"):
        await client.declare(pb.VIRTUAL_HOST, "shop", "shop", {"tags": ["a"] * 65})
    with pytest.raises(SyntaxFault, match="by the router"):
        await client.delete(pb.DeleteRequest(kind=pb.VIRTUAL_HOST, virtual_host="shop", name="shop"))


async def test_queues_and_bindings(asked: Asked, client: ObjectsClient) -> None:
    """Are declared, bound, purged and deleted, and shown as over HTTP; the user of a change is on record, what did not
    change is not."""
    told = {"durable": True, "arguments": {"x-max-length": 9}}
    assert await client.declare(pb.QUEUE, "/", "q", told)
    assert not await client.declare(pb.QUEUE, "/", "q", told)
    with pytest.raises(PreconditionFailed, match="inequivalent arg 'durable'"):
        await client.declare(pb.QUEUE, "/", "q", {})
    assert await client.declare(pb.EXCHANGE, "/", "shop", {"type": "topic"})
    bind = pb.BindRequest(virtual_host="/", source="shop", destination="q", told=b'{"routing_key": "eu.#"}')
    assert await client.bind(bind) == "eu.%23"
    publisher = await asked.house.connect()
    publisher.publish(b"m", "q")
    await publisher.declare("q", passive=True)  # when it is there
    assert await rows(client, pb.QUEUE) == await asked.get("queues")
    assert await rows(client, pb.BINDING) == await asked.get("bindings")
    assert [row["name"] for row in await rows(client, pb.EXCHANGE, fits={"name": "s*"})] == ["shop"]
    shown = await client.show(pb.QUEUE, "/", "q")
    assert (shown["messages"], [each["source"] for each in shown["bindings"]]) == (1, ["", "shop"])
    assert [each["destination"] for each in (await client.show(pb.EXCHANGE, "/", "shop"))["bindings"]] == ["q"]
    with pytest.raises(PreconditionFailed, match="not empty"):
        await client.delete(pb.DeleteRequest(kind=pb.QUEUE, virtual_host="/", name="q", if_empty=True))
    assert await client.purge("/", "q") == 1
    await client.unbind(bind)
    with pytest.raises(NotFound, match="no binding"):
        await client.unbind(bind)
    publisher.publish(b"m", "q")
    await publisher.declare("q", passive=True)
    assert await client.delete(pb.DeleteRequest(kind=pb.QUEUE, virtual_host="/", name="q")) == 1
    await client.delete(pb.DeleteRequest(kind=pb.EXCHANGE, virtual_host="/", name="shop"))
    assert await rows(client, pb.QUEUE) == []
    await asked.mgmt.stop()
    changes = [(line["by"], line["what"], line["change"], json.loads(line["name"])) for line in _changed(asked)]
    assert changes == [
        (WHO, "queue", "put", ["/", "q"]),
        (WHO, "exchange", "put", ["/", "shop"]),
        (WHO, "binding", "put", ["/", "shop", "q", "eu.#"]),
        (WHO, "queue", "purged", ["/", "q"]),
        (WHO, "binding", "deleted", ["/", "shop", "q", "eu.#"]),
        (WHO, "queue", "deleted", ["/", "q"]),
        (WHO, "exchange", "deleted", ["/", "shop"]),
    ]


async def test_over_http(asked: Asked) -> None:
    """What is changed is on record as well, with the user and where from; Broker-J's tree too."""
    for method, path in (("PUT", "queues/%2F/q"), ("DELETE", "queues/%2F/q/contents")):
        assert (await asked(method, path, {}))[0] < 300
    for path in ("queue/%252F/%252F/r", "queue/%252F/%252F/r/clearQueue"):
        assert (await asked.ask(f"/api/latest/{path}", "guest:guest", "POST" if "clear" in path else "PUT", {}))[
            0
        ] < 300
    await asked.mgmt.stop()
    changes = _changed(asked)
    assert [(line["change"], json.loads(line["name"])[1]) for line in changes] == [
        *(("put", "q"), ("purged", "q")),
        *(("put", "r"), ("purged", "r")),
    ]
    assert {line["by"] for line in changes} == {"guest (internal) from 127.0.0.1, over HTTP"}


def _changed(asked: Asked) -> list[Any]:
    lines: list[Any] = audited(Path(asked.house.settings.data))
    return [line for line in lines if line["event"] == "changed" and line["service"] == "mgmt"]


async def test_lists(asked: Asked, client: ObjectsClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Come in pages that say how many rows there are: those that fit, in the order of a column, at most so many."""
    monkeypatch.setattr(lists, "_PAGE", 2)
    await asked("PUT", "vhosts/other", {})
    for number in range(5):
        await client.declare(pb.QUEUE, "/", f"q{number}", {"durable": number > 1})
    await client.declare(pb.QUEUE, "other", "q9", {})
    pages = [page async for page in client.list(pb.ListRequest(kind=pb.QUEUE, fits={"durable": "true"}))]
    assert [(len(page.rows), page.total) for page in pages] == [(2, 3), (1, 3)]

    async def names(**more: Any) -> list[str]:
        return [row["name"] for row in await rows(client, pb.QUEUE, **more)]

    await client.declare(pb.QUEUE, "other", "r", {"arguments": {"x-max-priority": 4}})
    assert await names(fits={"arguments.x-max-priority": "4"}) == ["r"]  # which the first row does not have
    await client.delete(pb.DeleteRequest(kind=pb.QUEUE, virtual_host="other", name="r"))

    assert await names(virtual_host="other") == ["q9"]
    assert await names(sort="name", descending=True, most=2) == ["q9", "q4"]
    assert await names(sort="node", fits={"name": "q?", "vhost": "other"}) == ["q9"]
    assert await names(fits={"name": "none"}) == []
    assert [page async for page in client.list(pb.ListRequest(kind=pb.CONSUMER))] == [([], 0)]


async def test_who_is_connected(asked: Asked, client: ObjectsClient) -> None:
    """Connections with their channels, and consumers with their queues; one is closed, and its client told why."""
    connected = await asked.house.connect()
    await connected.declare("q")
    await connected.consume("q", "mine")
    await _connections(asked, 1)
    [told] = await rows(client, pb.CONNECTION)
    shown = await client.show(pb.CONNECTION, "", told["name"])
    assert shown == {**told, "channel_details": await asked.get(f"connections/{told['name']}/channels")}
    assert await rows(client, pb.CONSUMER, fits={"queue.name": "q"}) == await asked.get("consumers")
    assert await rows(client, pb.CONNECTION, fits={"user": "anna"}) == []
    await client.close_connection(told["name"], "für die Nacht, " * 20)
    assert "für die Nacht, für die Nacht" in (await connected.expect(commands.Connection.Close)).reply_text
    assert await _connections(asked, 0) == await rows(client, pb.CONNECTION) == []
    with pytest.raises(NotFound, match="no connection"):
        await client.close_connection(told["name"], "")
    await asked.mgmt.stop()
    assert [(line["by"], line["change"]) for line in _changed(asked)] == [(WHO, "closed")]


async def test_messages(asked: Asked, client: ObjectsClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Are sent as the user who signs in, and name it; they are got in pages, and may be requeued."""
    monkeypatch.setattr("services.mgmt.objects_handler._TOLD", 2)
    monkeypatch.setattr("services.mgmt.objects_handler._LARGEST", 100)
    guest = pb.Login(user="guest", password="guest")
    await client.declare(pb.QUEUE, "/", "q", {"arguments": {"x-max-length": 3, "x-overflow": "reject-publish"}})
    for number in range(3):
        assert await client.publish(guest, "/", "", {"routing_key": "q", "payload": f"m{number}"})
    assert not await client.publish(guest, "/", "", {"routing_key": "none", "payload": "m"})
    with pytest.raises(PreconditionFailed, match="refuses"):
        await client.publish(guest, "/", "", {"routing_key": "q", "payload": "m"})
    wanted = {"count": 5, "ackmode": "ack_requeue_true", "encoding": "auto"}
    pages = [page async for page in client.get(guest, "/", "q", wanted)]
    assert [(len(page.rows), page.total) for page in pages] == [(0, 2), (1, 3), (1, 3), (1, 3)]
    assert [row["payload"] for page in pages for row in page.rows] == ["m0", "m1", "m2"]
    taken = {**wanted, "ackmode": "ack_requeue_false"}
    assert sum([len(page.rows) async for page in client.get(guest, "/", "q", taken)]) == 3
    assert [page async for page in client.get(guest, "/", "q", taken)] == [([], 0)]


async def test_who_leaves(asked: Asked, client: ObjectsClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """While messages are got gets none of them, so none is gone."""
    guest, wanted = pb.Login(user="guest", password="guest"), {"count": 2, "encoding": "auto"}
    await client.declare(pb.QUEUE, "/", "q", {})
    for _ in range(2):
        await client.publish(guest, "/", "", {"routing_key": "q", "payload": "m"})
    get, has_one = Channel.get, asyncio.Event()

    async def slow(self: Channel, queue: str) -> Got | None:
        if has_one.is_set():
            await asyncio.Event().wait()
        found = await get(self, queue)
        has_one.set()
        return found

    async def taken() -> list[Row]:
        pages = client.get(guest, "/", "q", {**wanted, "ackmode": "ack_requeue_false"})
        return [row async for page in pages for row in page.rows]

    with monkeypatch.context() as patched:
        patched.setattr(Channel, "get", slow)
        leaving = asyncio.ensure_future(taken())
        await has_one.wait()
        leaving.cancel()
        await asyncio.wait({leaving})
        await _back(asked, 2)
    assert [row["redelivered"] for row in await taken()] == [True, False]


async def _back(asked: Asked, count: int) -> None:
    for _ in range(100):
        if (await asked.get("queues/%2F/q"))["messages_ready"] == count:
            return
        await asyncio.sleep(0.05)


async def test_an_exchange_that_leads_to_itself(asked: Asked, client: ObjectsClient) -> None:
    """Is shown with that binding once, between those that lead on, and those that lead to it."""
    await asked("PUT", "exchanges/%2F/shop", {"type": "topic"})
    for source, destination in (("shop", "amq.topic"), ("shop", "shop"), ("amq.topic", "shop")):
        await client.bind(pb.BindRequest(virtual_host="/", source=source, destination=destination, to_exchange=True))
    its = (await client.show(pb.EXCHANGE, "/", "shop"))["bindings"]
    assert [(row["source"], row["destination"]) for row in its] == [
        ("shop", "amq.topic"),
        ("shop", "shop"),
        ("amq.topic", "shop"),
    ]


WRONG: dict[str, tuple[Any, type[BrokerError], str]] = {
    "a column": (lambda client: rows(client, pb.QUEUE, sort="nam"), SyntaxFault, "there is no column 'nam'; there are"),
    "a virtual host": (lambda client: rows(client, pb.QUEUE, virtual_host="none"), NotFound, "no vhost 'none'"),
    "a kind": (lambda client: rows(client, pb.NOTHING), SyntaxFault, "no list of that kind"),
    "one of a kind": (lambda client: client.show(pb.BINDING, "/", "x"), SyntaxFault, "are shown one by one"),
    "a thing": (lambda client: client.declare(pb.BINDING, "/", "x", {}), SyntaxFault, "queues, exchanges and policies"),
    "a field": (lambda client: client.declare(pb.QUEUE, "/", "x", {"durable": "maybe"}), SyntaxFault, "durable"),
    "a number": (
        lambda client: client.declare(pb.QUEUE, "/", "x", {"arguments": {"n": math.nan}}),
        SyntaxFault,
        "NaN is no number",
    ),
    "where": (lambda client: client.declare(pb.QUEUE, "none", "x", {}), NotFound, "no vhost 'none'"),
    "no queue": (lambda client: client.purge("/", "none"), NotFound, "no queue 'none'"),
    "another's": (lambda client: client.purge("/", "own"), ResourceLocked, "exclusive access"),
}


async def test_what_is_wrong(asked: Asked, client: ObjectsClient) -> None:
    """Is named."""
    await (await asked.house.connect()).declare("own", exclusive=True)
    for ask, kind, text in WRONG.values():
        with pytest.raises(kind, match=text):
            await ask(client)
