from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import pytest

from services.common.errors import NotFound
from services.common.grpc_channel import connect
from services.common.grpc_errors import from_rpc
from services.common.grpc_server import Server
from services.rpc import store_pb2 as pb
from services.rpc.store_pb2_grpc import StoreServicer, StoreStub, add_StoreServicer_to_server
from tests.simulation.test_loop import begin, process_of
from tests.simulation.world import World
from tests.simulation.world.ambush import ANSWERED, ASKED, RECEIVED

ADDRESS = "server-1:7000"


class Servicer(StoreServicer):
    """Counts what it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.cancelled = 0

    async def AllocateOrigin(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.asked += 1
        if request.name == "refused":
            await context.abort(
                grpc.StatusCode.NOT_FOUND, "not here", trailing_metadata=(("hopline-error", "NotFound"),)
            )
        if request.name == "never":
            try:
                await asyncio.sleep(1e6)
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return pb.Origin(origin=self.asked)

    async def KeepAlive(self, _requests: Any, context: Any) -> None:  # type: ignore[override]  # noqa: N802
        while isinstance(request := await context.read(), pb.KeepAliveRequest):
            await context.write(pb.KeepAliveReply(ttl_ms=request.ttl_ms))

    async def WatchLeases(self, _request: Any, _context: Any) -> AsyncIterator[Any]:  # noqa: N802
        number = 0
        while True:
            number += 1
            yield pb.LeaseTable(version=number)
            await asyncio.sleep(1)


def played(play: Callable[[World, Any, Servicer], Awaitable[Any]], *, listens: bool = True) -> World:
    """Runs `play` with a stub of a server that listens, or not yet."""
    world, servicer = World(1), Servicer()

    async def serve() -> None:
        server = Server(ADDRESS, ["hopline.store.Store"])
        add_StoreServicer_to_server(servicer, server.grpc)
        await server.listen()

    async def run() -> None:
        if listens:
            await begin(world, "server-1", serve())
        else:
            begin(world, "server-1", asyncio.sleep(0))
            asyncio.get_running_loop().call_later(5, lambda: begin(world, "server-1", serve()))
        async with connect(ADDRESS) as channel:
            await play(world, StoreStub(channel), servicer)

    world.run(run())
    assert world.faults == []
    return world


def test_one_answer() -> None:
    """A call is answered, or raises what the service aborted with."""

    async def play(_world: World, stub: Any, _servicer: Servicer) -> None:
        assert (await stub.AllocateOrigin(pb.AllocateOriginRequest())).origin == 1
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await stub.AllocateOrigin(pb.AllocateOriginRequest(name="refused"))
        assert isinstance(from_rpc(failure.value), NotFound)

    played(play)


def test_question_and_answer() -> None:
    """A stream is written and read in turn, and ends when the client has said everything."""

    async def play(_world: World, stub: Any, _servicer: Servicer) -> None:
        call = stub.KeepAlive(wait_for_ready=True)
        for number in (1, 2, 3):
            await call.write(pb.KeepAliveRequest(ttl_ms=number))
            assert (await call.read()).ttl_ms == number
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF

    played(play)


def test_deadline() -> None:
    """A call that is not answered in time raises, and its servicer is cancelled."""

    async def play(_world: World, stub: Any, servicer: Servicer) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await stub.AllocateOrigin(pb.AllocateOriginRequest(name="never"), timeout=2)
        assert failure.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await asyncio.sleep(1)
        assert servicer.cancelled == 1

    played(play)


def test_nobody_there() -> None:
    """Without a listener a call fails at once, or waits until there is one, as the caller asked."""

    async def play(world: World, stub: Any, _servicer: Servicer) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await stub.AllocateOrigin(pb.AllocateOriginRequest())
        assert failure.value.code() is grpc.StatusCode.UNAVAILABLE
        await stub.AllocateOrigin(pb.AllocateOriginRequest(), wait_for_ready=True)
        assert world.time() > 5

    played(play, listens=False)


def test_lost_answer() -> None:
    """A connection that breaks fails the call, whether or not the request was carried out."""

    async def play(world: World, stub: Any, servicer: Servicer) -> None:
        link = world.network.link(world.network.host("scenario"), world.network.host("server-1"))
        await stub.AllocateOrigin(pb.AllocateOriginRequest())
        outcomes = set()
        while len(outcomes) < 2:
            before = servicer.asked
            call = stub.AllocateOrigin(pb.AllocateOriginRequest(), wait_for_ready=True)
            await asyncio.sleep(world.random.random() * 0.001)
            link.tear()
            await asyncio.sleep(1)
            if await call.code() is grpc.StatusCode.UNAVAILABLE:
                outcomes.add(servicer.asked - before)

    played(play)


def test_stream_breaks() -> None:
    """A stream of answers that breaks in the middle raises after what had come."""

    async def play(world: World, stub: Any, _servicer: Servicer) -> None:
        seen = []

        async def watch() -> None:
            async for table in stub.WatchLeases(pb.WatchLeasesRequest()):
                seen.append(table.version)
                if len(seen) == 3:
                    process_of(world, "server-1").die()

        with pytest.raises(grpc.aio.AioRpcError):
            await watch()
        assert seen == [1, 2, 3]

    played(play)


def test_closing() -> None:
    """A channel that is closed gives calls under way the time that it was told, then cancels them."""

    async def play(world: World, stub: Any, _servicer: Servicer) -> None:
        channel = connect(ADDRESS)
        closing = StoreStub(channel)
        call = closing.AllocateOrigin(pb.AllocateOriginRequest(name="never"), wait_for_ready=True)
        await stub.AllocateOrigin(pb.AllocateOriginRequest())
        began = world.time()
        await channel.close(5)
        assert world.time() == pytest.approx(began + 5, rel=1e-3)
        assert call.cancelled()

    played(play)


def test_ambushes() -> None:
    """An ambush springs before a servicer hears of a call, before its answer leaves, or as a request comes."""

    async def play(world: World, stub: Any, servicer: Servicer) -> None:
        asked: dict[str, int] = {}

        def lay(method: str, moment: str) -> None:
            world.network.ambushes.lay(method, moment, 1.0, lambda: asked.update({moment: servicer.asked}))

        for moment in (ASKED, ANSWERED):
            lay("AllocateOrigin", moment)
        began = world.time()
        await stub.AllocateOrigin(pb.AllocateOriginRequest())
        assert world.time() > began + 2
        assert asked == {ASKED: 0, ANSWERED: 1}
        lay("KeepAlive", RECEIVED)
        call = stub.KeepAlive()
        await call.write(pb.KeepAliveRequest(ttl_ms=1))
        assert (await call.read()).ttl_ms == 1
        assert world.time() > began + 3
        assert RECEIVED in asked
        call.cancel()

    played(play)


def test_a_service_that_stands_still() -> None:
    """Pings go unanswered, and the calls on the connection fail, without any deadline."""

    async def play(world: World, stub: Any, _servicer: Servicer) -> None:
        call = stub.AllocateOrigin(pb.AllocateOriginRequest(name="never"))
        await call.wait_for_connection()
        world.loop.hold(process_of(world, "server-1"))
        began = world.time()
        assert await call.code() is grpc.StatusCode.UNAVAILABLE
        assert 10 < world.time() - began < 30

    played(play)
