"""What is asked of the router that writes, while routers die."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from services.common.clients.topology import TopologyClient
from services.common.errors import InternalError
from services.common.grpc_server import Server
from services.rpc import router_pb2
from services.rpc.router_pb2_grpc import RouterServicer, add_RouterServicer_to_server
from services.rpc.store_pb2 import Lease, LeaseTable

ASKED = [router_pb2.Message(virtual_host="/", exchange="e", routing_key="k")]


class Store:
    """Says who writes."""

    def __init__(self) -> None:
        self._tables: asyncio.Queue[LeaseTable] = asyncio.Queue()

    def name(self, member: str, address: str) -> None:
        lease = Lease(name="router", epoch=1, member=member, address=address)
        self._tables.put_nowait(LeaseTable(leases=[lease]))

    async def watch_leases(self, _role: str) -> AsyncIterator[LeaseTable]:
        while True:
            yield await self._tables.get()


class Router(RouterServicer):
    """Answers, or keeps callers waiting."""

    def __init__(self, *, answers: bool) -> None:
        self.asked = asyncio.Event()
        self._answers = answers

    async def Route(self, request: router_pb2.RouteRequest, context: Any) -> router_pb2.RouteReply:  # noqa: N802
        del request, context
        self.asked.set()
        while not self._answers:
            await asyncio.sleep(60)
        return router_pb2.RouteReply(version=7)


async def started(router: Router, address: str) -> Server:
    server = Server(address, ["hopline.router.Router"])
    add_RouterServicer_to_server(router, server.grpc)
    await server.listen()
    return server


@pytest.fixture
async def store() -> Store:
    return Store()


@pytest.fixture
async def client(store: Store) -> AsyncIterator[TopologyClient]:
    client = TopologyClient(cast("Any", store), "gateway-1", "gateway", "1.")
    client.routers.start()
    yield client
    await client.stop(leave=False)


async def dies_while_asked(store: Store, member: str, address: str) -> None:
    """A router that is gone as soon as it is asked."""
    router = Router(answers=False)
    server = await started(router, address)
    store.name(member, address)
    await router.asked.wait()
    await server.stop(0)


async def answers(store: Store, member: str, address: str, asking: asyncio.Future[router_pb2.RouteReply]) -> None:
    """A router that does what those before it could not."""
    server = await started(Router(answers=True), address)
    store.name(member, address)
    assert (await asyncio.wait_for(asking, 10)).version == 7
    await server.stop(0)


async def test_a_router_that_does_not_listen_yet_has_not_died_of_what_it_was_not_asked(
    tmp_path: Path, store: Store, client: TopologyClient
) -> None:
    """Its lease is known before its socket is: callers wait for it."""
    address = f"unix:{tmp_path}/router.sock"
    asking = asyncio.ensure_future(client.route(ASKED))
    await dies_while_asked(store, "router-a", address)
    store.name("router-b", address)
    await asyncio.sleep(0.5)
    assert not asking.done()
    await answers(store, "router-b", address, asking)


async def test_a_router_that_was_gone_before_it_was_asked_did_not_die_of_it(
    tmp_path: Path, store: Store, client: TopologyClient
) -> None:
    """One that holds the lease and does not listen, then one that dies: the third is asked."""
    store.name("router-a", f"unix:{tmp_path}/1.sock")
    asking = asyncio.ensure_future(client.route(ASKED))
    await asyncio.sleep(0.2)
    await dies_while_asked(store, "router-b", f"unix:{tmp_path}/2.sock")
    await answers(store, "router-c", f"unix:{tmp_path}/3.sock", asking)


async def test_two_routers_that_die_while_they_are_asked_are_enough(
    tmp_path: Path, store: Store, client: TopologyClient
) -> None:
    """No third one is asked for the same."""
    asking = asyncio.ensure_future(client.route(ASKED))
    for number in (1, 2):
        await dies_while_asked(store, f"router-{number}", f"unix:{tmp_path}/{number}.sock")
        await asyncio.sleep(
            0.5
        )  # in which the caller hears of its end: were there another one first, it would not count
    with pytest.raises(InternalError, match="2 routers went away"):
        await asyncio.wait_for(asking, 10)


async def test_a_beat_that_is_due_while_the_stream_takes_nothing(
    client: TopologyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said with the next word, not with the next beat: by then its place may be given to another."""
    monkeypatch.setattr("services.common.clients.topology.until_next", lambda _: 0.01)
    said = client._say()
    await anext(said)
    client._wake.set()
    assert not (await anext(said)).beat_ms
    while not client._wake.is_set():
        await asyncio.sleep(0.001)
    assert (await anext(said)).beat_ms
    await said.aclose()
