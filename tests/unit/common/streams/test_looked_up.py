"""A peer is looked for where its name leads, and where it was for as long as nobody says where that is."""

from __future__ import annotations

import asyncio
import socket

import grpc
import pytest

from services.common.streams import channel as module
from services.common.streams.address import Address
from services.common.streams.channel import Channel
from tests.support.call_ends import Ends, Servicer, answering, method
from tests.support.ports import free_port
from tests.support.stream_ends import until, within

OURS = Ends(client=True, server=True)


class NameServer:
    """Says where `peer` is; does not answer while `knows` is not set."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.host = "127.0.0.1"
        self.failure: OSError | None = None
        self.asked = 0
        self.knows = asyncio.Event()
        self.knows.set()

    async def all_of(self, target: str) -> list[Address]:
        assert target == "peer:1"
        self.asked += 1
        await self.knows.wait()
        if self.failure:
            raise self.failure
        return [Address(host=self.host, port=self.port)]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> NameServer:
    """What channels ask."""
    server = NameServer(free_port())
    monkeypatch.setattr(module, "all_of", server.all_of)
    return server


async def _result(channel: Channel, request: bytes) -> bytes:
    return bytes(await method(channel, "unary_unary")(request, wait_for_ready=True))


async def test_a_peer_that_is_back_where_it_was(names: NameServer) -> None:
    """It is found there while a name server is silent about it."""
    async with Channel("peer:1") as channel:
        async with answering(OURS, f"127.0.0.1:{names.port}", Servicer()):
            assert await within(_result(channel, b"x")) == b"x"
        names.knows.clear()
        waiting = asyncio.ensure_future(_result(channel, b"y"))
        await until(lambda: names.asked > 1)
        async with answering(OURS, f"127.0.0.1:{names.port}", Servicer()):
            assert await within(waiting) == b"y"


async def test_a_peer_that_moved(names: NameServer) -> None:
    """It is found where its name leads now, though the name was said late."""
    async with Channel("peer:1") as channel:
        async with answering(OURS, f"127.0.0.1:{names.port}", Servicer()):
            assert await within(_result(channel, b"x")) == b"x"
        names.knows.clear()
        names.host = "127.0.0.2"
        async with answering(OURS, f"127.0.0.2:{names.port}", Servicer()):
            waiting = asyncio.ensure_future(_result(channel, b"y"))
            await asyncio.sleep(0.4)  # until it is looked for where it was
            names.knows.set()
            assert await within(waiting) == b"y"


async def test_nobody_listens_where_it_was(names: NameServer) -> None:
    """A call that does not wait fails when the name is not known and nobody answers at the former address."""
    async with Channel("peer:1") as channel:
        async with answering(OURS, f"127.0.0.1:{names.port}", Servicer()):
            assert await within(_result(channel, b"x")) == b"x"
        names.failure = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        with pytest.raises(grpc.aio.AioRpcError, match="failed to connect") as failure:
            await within(method(channel, "unary_unary")(b"y", timeout=20))
    assert failure.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_machine_that_takes_nothing(names: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is dialled anew soon: a kernel of ours would knock ever more rarely."""
    dialled = list[Address]()

    async def hang(address: Address, *_: object) -> None:
        dialled.append(address)
        await asyncio.Event().wait()

    monkeypatch.setattr(module, "_DIAL_SECONDS", 0.01)
    connect = Address.connect
    async with Channel("peer:1") as channel:
        monkeypatch.setattr(Address, "connect", hang)
        waiting = asyncio.ensure_future(_result(channel, b"x"))
        await until(lambda: len(dialled) > 2)
        monkeypatch.setattr(Address, "connect", connect)
        async with answering(OURS, f"127.0.0.1:{names.port}", Servicer()):
            assert await within(waiting) == b"x"
