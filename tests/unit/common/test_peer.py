"""Clients of a service at whose address another process answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc.aio
import pytest

from services.common.clients import peer
from services.common.clients.store import Journal, StoreClient
from services.common.clock import monotonic
from services.common.errors import NotImplementedHere, Unavailable, WrongPeer, with_notes
from services.common.grpc_errors import from_rpc
from services.common.grpc_server import Server
from services.rpc import store_pb2 as pb
from services.rpc.mgmt_pb2_grpc import MgmtServicer, add_MgmtServicer_to_server
from services.rpc.store_pb2_grpc import add_StoreServicer_to_server
from services.store.engine import Engine
from services.store.handler import Handler
from services.store.providers.memory import MemoryProvider
from tests.support.silent_listener import silent_listener


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    engine = Engine(MemoryProvider(tmp_path), 1000, monotonic, lambda _: None)
    await engine.start()
    yield engine
    await engine.stop()


async def mgmt_at(address: str) -> Server:
    """What has the store's address."""
    server = Server(address, ["hopline.mgmt.Mgmt"])
    add_MgmtServicer_to_server(MgmtServicer(), server.grpc)
    await server.listen()
    return server


async def store_at(address: str, engine: Engine) -> Server:
    server = Server(address, ["hopline.store.Store"])
    add_StoreServicer_to_server(Handler(engine), server.grpc)
    await server.listen()
    return server


async def refused_a_renewal(client: StoreClient) -> None:
    """gRPC's client turns a refusal that comes while it sends into INTERNAL: only the next one names the process."""
    for _ in range(100):
        with pytest.raises(Unavailable) as failure:
            await client.keep_alive(pb.KeepAliveRequest(member="me", role="queue"))
        if isinstance(failure.value, WrongPeer):
            return
    raise AssertionError(failure.value)


async def test_everything_waits_for_the_one_that_is_meant(tmp_path: Path, engine: Engine) -> None:
    """Calls, watches, renewals and the journal: the connection to the wrong process is given up, though it is open."""
    address = f"unix:{tmp_path}/store.sock"
    mgmt = await mgmt_at(address)
    client, journal = StoreClient(address), Journal(address, "test")
    await journal.start()
    await refused_a_renewal(client)
    with pytest.raises(WrongPeer):
        await client.leases("queue")
    watch = client.watch_leases("queue")
    asked = [
        asyncio.ensure_future(call)
        for call in (client.allocate_origin("me"), client.list_records(), client.put_records(), anext(aiter(watch)))
    ]
    written = journal.append(pb.JournalFrame())
    await asyncio.sleep(0.3)
    assert not any(each.done() for each in (*asked, written))
    (tmp_path / "store.sock").unlink()
    store = await store_at(address, engine)
    async with asyncio.timeout(60):
        await asyncio.gather(*asked, written)
    assert (await client.keep_alive(pb.KeepAliveRequest(member="me", role="queue"), timeout=30)).incarnation
    await journal.stop()
    await client.close()
    for server in (store, mgmt):
        await server.stop(0)


async def test_a_method_that_the_service_does_not_offer(tmp_path: Path) -> None:
    """A call that the service itself refuses as not offered is no wrong peer; a method unknown there is."""
    address = f"unix:{tmp_path}/mgmt.sock"
    mgmt = await mgmt_at(address)
    async with grpc.aio.insecure_channel(address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await channel.unary_unary("/hopline.router.Router/Change")(b"")
    error = from_rpc(failure.value)
    assert isinstance(error, WrongPeer)
    assert isinstance(error, Unavailable)
    assert not isinstance(NotImplementedHere("x"), WrongPeer)
    await mgmt.stop(0)


async def test_a_stream_outlives_the_connection_that_is_given_up(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes on over a connection that another call's failure ended begins again; no task ends with it."""
    monkeypatch.setattr(peer, "_LINGER", 0.0)
    address = f"unix:{tmp_path}/store.sock"
    server, client = await store_at(address, engine), StoreClient(address)
    tables: asyncio.Queue[pb.LeaseTable] = asyncio.Queue()

    async def follow() -> None:
        async for table in client.watch_leases("queue"):
            tables.put_nowait(table)

    following = asyncio.get_running_loop().create_task(follow())
    await tables.get()
    client._peer.judge(WrongPeer("somebody else"), client._peer.stub)
    await tables.get()
    assert not following.done()
    following.cancel()
    await client.close()
    await server.stop(0)


async def test_who_did_not_answer(tmp_path: Path) -> None:
    """A process that cannot start says who did not answer, where that is, and what to do; clients see none of it."""
    with silent_listener(tmp_path / "store.sock"):
        client = StoreClient(address := f"unix:{tmp_path / 'store.sock'}")
        with pytest.raises(Unavailable) as failure:
            await client._peer.result(
                lambda stub, left: stub.AllocateOrigin(pb.AllocateOriginRequest(), timeout=left), 0.1
            )
        await client.close()
    said = with_notes(failure.value)
    assert f"the store at {address} was asked: see that it runs there" in said
    assert said.startswith("no answer in time")
    assert address not in failure.value.text


async def test_what_is_said_without_a_word() -> None:
    """An error without a text is told by its kind."""
    assert with_notes(TimeoutError()) == "TimeoutError"
