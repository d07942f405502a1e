"""A client that cannot connect is told why."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from services.common.runtime import CannotStart
from services.common.streams import client
from services.common.streams.address import Address
from services.common.streams.client import CannotConnect, connect
from services.common.streams.server import StreamServer
from tests.support.stream_ends import METHOD, Heard, serving, within

Greet = Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]


@asynccontextmanager
async def _stranger(address: str, greet: Greet) -> AsyncIterator[str]:
    """A server that speaks something else; gives its address."""
    writers: list[asyncio.StreamWriter] = []

    def came(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        greet(reader, writer)

    if address.startswith("unix:"):
        server = await asyncio.start_unix_server(came, address.removeprefix("unix:"))
    else:
        server = await asyncio.start_server(came, "127.0.0.1", 0)
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield address
        for writer in writers:
            writer.close()


async def _refusal(address: str) -> str:
    heard = Heard()
    with pytest.raises(CannotConnect) as failure:
        await within(connect(address, METHOD, heard))
    assert heard.reasons == []
    return str(failure.value)


async def test_nobody_listens(unix: str) -> None:
    """At a socket that does not exist, and at a closed port."""
    assert "No such file" in await _refusal(unix)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert "onnect" in await _refusal(f"127.0.0.1:{bound.getsockname()[1]}")


@pytest.mark.parametrize("nowhere", ["a..b:7000", f"{'a' * 70}.example:7000", "\udcff:7000"])
async def test_what_cannot_be_a_name(nowhere: str) -> None:
    """Whoever tries again later does so, as with one that is not known."""
    assert await _refusal(nowhere)


@pytest.mark.parametrize("nowhere", ["nonsense", "host:65536", "", "unix:"])
async def test_what_is_no_address(nowhere: str) -> None:
    """Says so."""
    assert "is not an address" in await _refusal(nowhere)


async def test_a_peer_that_says_nothing(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is waited for no longer than a connection may take."""
    monkeypatch.setattr(client, "_CONNECT_SECONDS", 0.05)
    async with _stranger(address, lambda reader, writer: None) as target:
        assert await _refusal(target) == "no answer in 0.05 s"


async def test_a_peer_that_hangs_up(address: str) -> None:
    """Is not one that answers."""
    async with _stranger(address, lambda reader, writer: writer.close()) as target:
        assert await _refusal(target)


async def test_a_peer_that_answers_and_hangs_up(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one turn of the loop: no caller is left with a stream on a closed connection."""

    async def answer_and_go(_self: Address, _loop: object, create: Callable[[], asyncio.BufferedProtocol]) -> None:
        peer = cast("Any", create())
        peer.ready(None)
        peer.connection_lost(None)

    monkeypatch.setattr(Address, "connect", answer_and_go)
    assert await _refusal(address) == "the peer closed the connection"


async def test_a_peer_that_speaks_http_1(address: str) -> None:
    """Is left at once, and the log says why."""
    answer = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
    with capture_logs() as lines:
        async with _stranger(address, lambda reader, writer: writer.write(answer)) as target:
            assert "frame" in await _refusal(target)
    assert [line["event"] for line in lines] == ["the peer broke the rules of HTTP/2; its connection ends"]


async def test_connecting_can_be_cancelled(address: str) -> None:
    """The connection is closed with its caller's cancellation."""
    came, gone = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader) -> None:
        came.set()
        await reader.read()
        gone.set()

    tasks: list[asyncio.Task[None]] = []
    async with _stranger(address, lambda reader, writer: tasks.append(asyncio.create_task(silent(reader)))) as target:
        connecting = asyncio.ensure_future(connect(target, METHOD, Heard()))
        await within(came.wait())
        connecting.cancel()
        await within(gone.wait())
        with pytest.raises(asyncio.CancelledError):
            await connecting


async def test_an_address_that_is_taken() -> None:
    """A second server at a port cannot start, and says which it is."""
    async with serving("127.0.0.1:0") as served:
        second = StreamServer(served.address, [])
        with pytest.raises(CannotStart, match=served.address):
            await second.listen()
        await second.stop(0)


async def test_an_address_that_is_none() -> None:
    """A server cannot start there."""
    with pytest.raises(CannotStart, match="nonsense"):
        await StreamServer("nonsense", []).listen()


async def test_a_socket_that_a_dead_process_left(unix: str) -> None:
    """Is no obstacle, nor is a folder that does not exist yet."""
    path = unix.removeprefix("unix:")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
    async with serving(unix) as served:
        stream = await connect(served.address, METHOD, Heard())
        stream.close()
    async with serving(f"{unix}-folder/deeper/s") as served:
        stream = await connect(served.address, METHOD, Heard())
        stream.close()
