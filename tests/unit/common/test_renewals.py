"""Renewals on one stream: what becomes of it when the store is slow, refuses, or goes away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.common.clients.store import StoreClient
from services.common.errors import CommandInvalid, Unavailable
from services.common.grpc_errors import abort
from services.common.grpc_server import Server
from services.rpc import store_pb2 as pb
from services.rpc import store_pb2_grpc

REQUEST = pb.KeepAliveRequest(member="me", role="queue")


class Store(store_pb2_grpc.StoreServicer):
    """Counts its streams, and answers with the number of the request."""

    def __init__(self, address: str) -> None:
        self.streams = self.requests = 0
        self.answers = asyncio.Event()
        self.answers.set()
        self._server = Server(address, ["hopline.store.Store"])
        store_pb2_grpc.add_StoreServicer_to_server(self, self._server.grpc)

    async def start(self) -> None:
        await self._server.listen()

    async def stop(self) -> None:
        await self._server.stop(0)

    async def KeepAlive(self, _requests: object, context: Any) -> None:  # type: ignore[override]  # noqa: N802
        self.streams += 1
        while isinstance(request := await context.read(), pb.KeepAliveRequest):
            if not request.role:
                await abort(context, CommandInvalid("a member without a role"))
            self.requests += 1
            version = self.requests
            await self.answers.wait()
            await context.write(pb.KeepAliveReply(version=version))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = Store(f"unix:{tmp_path}/store.sock")
    await store.start()
    yield store
    await store.stop()


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[StoreClient]:
    client = StoreClient(f"unix:{tmp_path}/store.sock")
    yield client
    await client.close()


async def test_one_stream_for_each_member(store: Store, client: StoreClient) -> None:
    """Requests of a member follow each other on its stream; another member has its own."""
    assert [(await client.keep_alive(REQUEST)).version for _ in range(3)] == [1, 2, 3]
    assert store.streams == 1
    await client.keep_alive(pb.KeepAliveRequest(member="other", role="queue"))
    assert store.streams == 2


async def test_an_answer_that_comes_late_is_dropped(store: Store, client: StoreClient) -> None:
    """After a request that was not answered in time, the answer to it is not taken for that to the next."""
    await client.keep_alive(REQUEST)
    store.answers.clear()
    with pytest.raises(Unavailable):
        await client.keep_alive(REQUEST, timeout=0.05)
    store.answers.set()
    assert (await client.keep_alive(REQUEST, timeout=30)).version == 3


async def test_a_caller_that_stops_asking_leaves_no_answer_behind(store: Store, client: StoreClient) -> None:
    """A request whose caller was cancelled is followed by one with its own answer."""
    store.answers.clear()
    asking = asyncio.create_task(client.keep_alive(REQUEST, timeout=30))
    while not store.requests:
        await asyncio.sleep(0.005)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    store.answers.set()
    assert (await client.keep_alive(REQUEST, timeout=30)).version == 2


async def test_refusals_come_as_what_they_are(store: Store, client: StoreClient) -> None:
    """What the store refuses is raised as its type, and the next request is answered."""
    with pytest.raises(CommandInvalid):
        await client.keep_alive(pb.KeepAliveRequest(member="me"), timeout=30)
    assert (await client.keep_alive(REQUEST, timeout=30)).version == 1


async def test_a_store_that_restarts(store: Store, client: StoreClient, tmp_path: Path) -> None:
    """A stream that went with its store is replaced without a failure by the first request to the next store."""
    await client.keep_alive(REQUEST)
    await store.stop()
    with pytest.raises(Unavailable):
        await client.keep_alive(REQUEST, timeout=0.1)
    following = Store(f"unix:{tmp_path}/store.sock")
    await following.start()
    assert (await client.keep_alive(REQUEST, timeout=30)).version == 1
    await following.stop()
