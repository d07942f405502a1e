from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.simulation.test_loop import begin, process_of
from tests.simulation.world import Shape, World


class Server(asyncio.Protocol):
    """Keeps what comes, says when it ends; `paused` leaves all of it in the socket."""

    def __init__(self, *, paused: bool = False) -> None:
        self.data = b""
        self.pieces = 0
        self.end: list[object] = []
        self.transport: Any = None
        self._paused = paused

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        if self._paused:
            self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.pieces += 1

    def connection_lost(self, failure: Exception | None) -> None:
        self.end.append(type(failure))


async def listen(server: Server) -> None:
    await asyncio.get_running_loop().create_server(lambda: server, None, 7)


async def connected(world: World, server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    await begin(world, "server-1", listen(server))
    return await asyncio.open_connection("server-1", 7)


def test_in_order() -> None:
    """Bytes arrive whole and in order, in pieces of the network's choice."""
    world, server = World(5, Shape(splits=0.5)), Server()

    async def talk() -> None:
        _, writer = await connected(world, server)
        for number in range(1000):
            writer.write(b"%d," % number)
            if not number % 100:
                await asyncio.sleep(0.001)
        writer.close()
        await asyncio.sleep(1)

    world.run(talk())
    assert server.data == b"".join(b"%d," % number for number in range(1000))
    assert server.pieces > 10
    assert server.end == [type(None)]


def test_who_does_not_read() -> None:
    """A peer that does not read holds its writer back, and gets everything when it reads again."""
    world, server = World(1), Server(paused=True)

    async def talk() -> None:
        _, writer = await connected(world, server)
        writer.write(bytes(1 << 20))
        drained = asyncio.ensure_future(writer.drain())
        await asyncio.sleep(10)
        assert not drained.done()
        server.transport.resume_reading()
        await drained
        writer.close()
        await asyncio.sleep(1)

    world.run(talk())
    assert len(server.data) == 1 << 20


def test_nobody_listens() -> None:
    """A port without a listener refuses; an unknown host is reported as such."""
    world = World(1)

    async def call() -> None:
        begin(world, "server-1", asyncio.sleep(0))
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("server-1", 8)
        with pytest.raises(OSError, match="no route"):
            await asyncio.open_connection("10.9.9.9", 8)

    world.run(call())


@pytest.mark.parametrize("seed", range(6))
def test_cut(seed: int) -> None:
    """Nothing arrives over a link that is cut, unnoticed by both ends; later all arrives, or the connection ends."""
    world, server = World(seed), Server()

    async def talk() -> None:
        _, writer = await connected(world, server)
        link = world.network.link(world.network.host("scenario"), world.network.host("server-1"))
        link.cut(3)
        writer.write(b"late")
        await asyncio.sleep(2.9)
        assert (server.data, server.end) == (b"", [])
        await asyncio.sleep(2)
        assert server.data == b"late" or server.end
        writer.close()

    world.run(talk())


@pytest.mark.parametrize("seed", range(6))
def test_torn(seed: int) -> None:
    """When a connection is torn what arrives is the beginning of what was sent, and both ends are told."""
    world, server = World(seed), Server()

    async def talk() -> None:
        reader, writer = await connected(world, server)
        for _ in range(20):
            writer.write(b"0123456789")
            await asyncio.sleep(0.0001)
        world.network.link(world.network.host("scenario"), world.network.host("server-1")).tear()
        with pytest.raises(ConnectionResetError):
            await reader.read()
        await asyncio.sleep(1)

    world.run(talk())
    assert (b"0123456789" * 20).startswith(server.data)
    assert server.end == [ConnectionResetError]


def test_peer_dies() -> None:
    """Connections to a process that is killed end; its port refuses."""
    world, server = World(1), Server()

    async def talk() -> None:
        reader, _ = await connected(world, server)
        process_of(world, "server-1").die()
        with pytest.raises(ConnectionResetError):
            await reader.read()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("server-1", 7)

    world.run(talk())
