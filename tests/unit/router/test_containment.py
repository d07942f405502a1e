"""Nothing that one asks for, or that one record says, ends a router."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from services.common.clients.routers import Router
from services.common.clients.store import StoreClient
from services.common.clients.topology import TopologyClient
from services.common.errors import BrokerError, InternalError, PreconditionFailed
from services.common.topology.exchanges.headers import HeadersExchange
from services.gateway.routing.bindings import Bindings
from services.rpc import router_pb2, store_pb2


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exchanges of type headers fail half-way through bindings with the key `faulty`."""
    bind = HeadersExchange.bind

    def fail(self: HeadersExchange, binding: Any) -> None:
        bind(self, binding)
        if binding.routing_key == "faulty":
            raise RecursionError("half-way")

    monkeypatch.setattr(HeadersExchange, "bind", fail)


async def test_only_the_caller_of_the_impossible_gets_the_error(cluster: Any, faulty: None) -> None:
    """A change that fails half-way is an internal error for its caller; those of the same group are carried out."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    await client.change(cluster.request("declare_queue", name="q"))
    cluster.store.delay = 0.05  # so that what follows becomes one group
    binds = [cluster.request("bind", source="amq.headers", destination="q", routing_key=key)
             for key in ("a", "b", "faulty", "c")]  # fmt: skip
    with capture_logs() as told:
        answers = await asyncio.gather(*map(client.change, binds), return_exceptions=True)
    assert [type(answer) for answer in answers] == [
        router_pb2.ChangeReply, router_pb2.ChangeReply, InternalError, router_pb2.ChangeReply,
    ]  # fmt: skip
    assert [each["do"] for each in told if each["log_level"] == "error"]
    assert not cluster.lost.is_set()
    keys = {json.loads(key)[3] for kind, key in cluster.store.records if kind == "binding"}
    assert keys == {"a", "b", "c"}
    described = await _described(cluster)
    assert {binding.bind.routing_key for binding in described.bindings} == {"a", "b", "c"}


async def _described(cluster: Any) -> router_pb2.DescribeReply:
    client = await cluster.watch("g2")
    writer = await client.routers.known()
    return await client.routers.stub(writer).Describe(router_pb2.DescribeRequest())


async def test_what_the_store_refuses_fails_for_its_caller_only(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that the store does not take is refused to its caller; those of others are kept."""
    put = StoreClient.put_records

    async def picky(self: StoreClient, puts: Any = (), deletes: Any = (), fence: Any = None) -> int:
        if any(record.key == '["/", "heavy"]' for record in puts):
            raise PreconditionFailed("too heavy")
        return await put(self, puts, deletes, fence)

    monkeypatch.setattr(StoreClient, "put_records", picky)
    await cluster.start_router()
    client = await cluster.watch("g1")
    cluster.store.delay = 0.05
    declares = [cluster.request("declare_queue", name=name) for name in ("first", "light", "heavy", "lighter")]
    with capture_logs():
        answers = await asyncio.gather(*map(client.change, declares), return_exceptions=True)
    assert [type(answer) is PreconditionFailed for answer in answers] == [False, False, True, False]
    assert {each.queue for each in client.by_name} == {"first", "light", "lighter"}


async def test_a_change_is_undone_at_watchers_that_have_seen_it(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, until: Any
) -> None:
    """A watcher that comes back while a change is written sees it; if the store refuses it, no watcher routes by it."""
    put, held, asked = StoreClient.put_records, asyncio.Event(), asyncio.Event()

    async def picky(self: StoreClient, puts: Any = (), deletes: Any = (), fence: Any = None) -> int:
        if any(record.kind == "binding" for record in puts):
            asked.set()
            await held.wait()
            raise PreconditionFailed("too heavy")
        return await put(self, puts, deletes, fence)

    monkeypatch.setattr(StoreClient, "put_records", picky)
    await cluster.start_router()
    client = await cluster.watch("g1")
    await client.change(cluster.request("declare_queue", name="q"))
    binding = asyncio.ensure_future(client.change(cluster.request("bind", source="amq.fanout", destination="q")))
    await asked.wait()
    copy = Bindings()
    again = TopologyClient(cluster.store_client, "g1", "gateway", "g1/", copy=copy)
    await again.start()
    seen = [dict((copy.sources("/") or {})["amq.fanout"].bindings)]
    held.set()
    with capture_logs(), pytest.raises(PreconditionFailed):
        await binding
    await until(lambda: not (copy.sources("/") or {})["amq.fanout"].bindings)
    assert len(seen[0]) == 1
    assert copy.whole
    await again.stop(leave=False)


async def test_a_table_that_looks_like_a_decimal_is_a_table(cluster: Any) -> None:
    """queue.declare with the argument "!decimal" is a queue with an argument of that name."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    declare = router_pb2.DeclareQueue(name="p", arguments=b'{"!decimal": "x"}')
    request = router_pb2.ChangeRequest(virtual_host="/", declare_queue=declare)
    assert (await client.change(request)).created
    assert not (await client.change(request)).created


_POISON = {
    ("queue", '["/", "no json"]'): b"{",
    ("queue", '["/", "of another shape"]'): b'{"id": "seven", "virtual_host": "/", "name": "x"}',
    ("exchange", '["/", "of no type"]'): b'{"virtual_host": "/", "name": "of no type", "type": "gone"}',
    ("exchange", '["/", "deep"]'): b'{"virtual_host": "/", "name": "deep", "type": "direct", "arguments": "{"}',
    ("binding", '["/", "amq.headers", "amq.direct", "", ""]'): (
        b'{"virtual_host": "/", "source": "amq.headers", "destination": "amq.direct", "routing_key": "",'
        b' "arguments": "{\\"x-match\\": 5}"}'
    ),
    ("watcher", "unreadable"): b"\xff",
}


async def test_records_that_cannot_be_read_are_left_out(cluster: Any) -> None:
    """They are named in the log with what to do, stay in the store, and the router serves the rest."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    await client.change(cluster.request("declare_queue", name="q", durable=True))
    await cluster.stop_router()
    for (kind, key), value in _POISON.items():
        cluster.store.records[kind, key] = store_pb2.Record(kind=kind, key=key, value=value)
    with capture_logs() as told:
        await cluster.start_router()
    named = {(each["kind"], each["key"]) for each in told if each["event"].startswith("a record cannot be read")}
    assert named == _POISON.keys() - {("watcher", "unreadable")}
    assert _POISON.items() <= {key: record.value for key, record in cluster.store.records.items()}.items()
    assert (await client.change(cluster.request("declare_queue", name="q", durable=True))).queue.id
    assert (await client.change(cluster.request("declare_queue", name="no json", durable=True))).created
    assert not cluster.lost.is_set()


class _Lost(grpc.aio.AioRpcError):
    """A call whose router went away."""

    def __init__(self) -> None:
        super().__init__(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "Socket closed")


async def test_what_two_routers_died_of_no_third_is_asked(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that ends the router which carries it out is refused after the second."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    asked: list[str] = []

    async def dies(writer: Router, work: Any) -> Any:
        work.close()
        asked.append(writer.member)
        client.routers.writer = Router(f"successor {len(asked)}", "unix:nowhere")
        raise _Lost

    monkeypatch.setattr(client.routers, "while_writing", dies)
    with pytest.raises(InternalError, match="routers went away"):
        await client.change(cluster.request("declare_queue", name="q"))
    assert len(asked) == 2


@pytest.mark.parametrize("answer", [InternalError("ours"), PreconditionFailed("yours")])
async def test_an_answer_is_not_asked_for_again(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, answer: BrokerError
) -> None:
    """Only a router that is away is replaced by another: any other answer, another would give too."""
    router = await cluster.start_router()
    client = await cluster.watch("g1")
    asked: list[Any] = []

    async def answers(request: Any, _asker: str) -> Any:
        asked.append(request)
        raise answer

    monkeypatch.setattr(router._handler.role, "change", answers)
    with capture_logs(), pytest.raises(type(answer)):
        await client.change(cluster.request("declare_queue", name="q"))
    assert len(asked) == 1
