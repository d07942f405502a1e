"""TLS on a socket that was looked at first: on asyncio's loop, and on uvloop's, which gateways use."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop
from structlog.testing import capture_logs

from services.common.config import Settings
from services.common.few_lines import FewLines
from services.common.runtime import Tasks
from services.gateway.transport.arrival import Arrival, Offer
from services.gateway.transport.certificates import Certificates, Files
from services.gateway.transport.tls import Tls
from tests.support.certificates import Authority
from tests.support.tls_by_hand import ByHand

Play = Callable[["Served"], Awaitable[None]]


class Echo(asyncio.Protocol):
    """In place of a connection: says again what it hears."""

    def __init__(self, listener: Any) -> None:
        self.listener = listener
        self.heard = b""
        self.lost: list[Exception | None] = []
        self.peer = self.peer_host = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.speak_over(transport)
        self.peer_host, _ = transport.get_extra_info("peername") or ("", 0)

    def speak_over(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.heard += data
        self.transport.write(data)

    def connection_lost(self, failure: Exception | None) -> None:
        self.lost.append(failure)

    def eof_received(self) -> bool:
        return False

    def cut_off(self) -> None:
        self.transport.abort()


class Served(SimpleNamespace):
    """`port`, `connections` by their order, `authority`."""

    port: int
    connections: list[Echo]
    authority: Authority

    async def lost(self) -> None:
        """Returns when the last connection is told of its end."""
        async with asyncio.timeout(5):
            while not self.connections[-1].lost:
                await asyncio.sleep(0.01)


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Served]:
    authority = Authority(folder)
    tls = Tls(Settings())
    tls.certificates = Certificates(Files((authority.sign("broker", ["localhost"]),)))
    settings = SimpleNamespace(handshake_timeout=1.0, tls_user="common-name")
    listener = SimpleNamespace(tasks=Tasks(), few=FewLines(), settings=settings)
    connections: list[Echo] = []

    def accept() -> asyncio.Protocol:
        connections.append(Echo(listener))
        nobody: Any = ()
        return Arrival(connections[-1], Offer(nobody, [tls]))  # type: ignore[arg-type]

    server = await asyncio.get_running_loop().create_server(accept, "127.0.0.1", 0)
    try:
        yield Served(port=server.sockets[0].getsockname()[1], connections=connections, authority=authority)
    finally:
        server.close()
        await listener.tasks.stop()


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop])
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Play], None]:
    """Runs what a test does with a server, on one loop and on the other."""

    async def run(act: Play) -> None:
        async with served(tmp_path) as server, asyncio.timeout(20):
            await act(server)

    def runs(act: Play) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(run(act))

    return runs


@pytest.mark.parametrize("size", [1, 7, 300, 1 << 16])
def test_first_bytes_in_pieces(play: Callable[[Play], None], size: int) -> None:
    """All of them are heard once and in order, and what comes in one piece with the last of the handshake."""

    async def act(server: Served) -> None:
        client = ByHand(server.authority.client())
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        hello = client.hello()
        for first in range(0, len(hello), size):
            writer.write(hello[first : first + size])
            await asyncio.sleep(0)
            await writer.drain()
        await client.finish(reader, writer, b"first words" * 1000)
        said = b""
        while len(said) < 11_000:
            said += await client.read(reader, 20_000)
        assert said == server.connections[0].heard == b"first words" * 1000
        writer.close()
        await server.lost()
        assert len(server.connections[0].lost) == 1

    play(act)


@pytest.mark.parametrize("how", ["end", "reset", "silence", "garbage"])
def test_hands_that_are_not_shaken(play: Callable[[Play], None], how: str) -> None:
    """The connection is told of its end, and once."""

    async def act(server: Served) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        hello = ByHand(server.authority.client()).hello()
        writer.write(hello if how != "garbage" else b"\x16\x03\x01\x00\x05GARBAGE")
        await writer.drain()
        await asyncio.sleep(0.1)
        if how == "end":
            writer.close()
        elif how == "reset":
            writer.transport.abort()
        await server.lost()
        await asyncio.sleep(0.1)
        assert len(server.connections[0].lost) == 1
        assert server.connections[0].transport.is_closing()
        writer.close()

    play(act)


def test_long_hellos(play: Callable[[Play], None]) -> None:
    """One that no client needs is refused at once: its peer could leave out the end, and have the rest kept."""

    async def act(server: Served) -> None:
        context = server.authority.client()
        context.set_alpn_protocols([f"{number:0200}" for number in range(60)])
        client = ByHand(context)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(client.hello())
        await client.finish(reader, writer, b"welcome")
        assert await client.read(reader, 7) == b"welcome"
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"\x16\x03\x01\x40\x00\x01\x02\x00\x00\x03\x03" + bytes(10_000))
        await server.lost()
        writer.close()

    with capture_logs() as logged:
        play(act)
    assert [line["reason"] for line in logged] == ["the client's hello is too long"]


def test_a_name_that_is_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends the handshake, without a traceback in the log; other errors in callbacks are logged."""
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    authority = Authority(tmp_path)
    files = Files((authority.sign("first", ["first.test"]), authority.sign("second", ["second.test"])))
    for _ in range(2):  # as when files have changed
        context = Certificates(files).context()
    incoming = ssl.MemoryBIO()
    incoming.write(ByHand(authority.client(), "first.test").hello().replace(b"first.test", b"f\xff\xfest.test"))
    with pytest.raises(ssl.SSLError):
        context.wrap_bio(incoming, ssl.MemoryBIO(), server_side=True).do_handshake()
    assert not told
    other = SimpleNamespace(exc_type=UnicodeDecodeError, exc_value=None, object=self_made)
    sys.unraisablehook(other)  # type: ignore[arg-type]
    assert told == [other]


def self_made() -> None:
    """Something that failed."""


def test_plain(play: Callable[[Play], None]) -> None:
    """A client that does not begin with TLS is read from the first byte on."""

    async def act(server: Served) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"\x16")
        await asyncio.sleep(0.01)
        writer.write(b"plain")
        assert await reader.readexactly(6) == b"\x16plain"
        writer.close()
        await server.lost()

    play(act)


@pytest.mark.parametrize("reset", [False, True])
def test_a_client_that_is_gone_when_its_first_bytes_are_read(play: Callable[[Play], None], reset: bool) -> None:
    """Its end is told once: what is left of it is not taken for a client after its handshake."""

    async def act(server: Served) -> None:
        for _ in range(20):
            client = socket.create_connection(("127.0.0.1", server.port))
            client.sendall(ByHand(server.authority.client()).hello())
            if reset:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            await asyncio.sleep(0.01)
        async with asyncio.timeout(5):
            while not all(connection.lost for connection in server.connections):
                await asyncio.sleep(0.01)

    with capture_logs() as logged:
        play(act)
    assert {line["event"] for line in logged} <= {"TLS handshake failed"}
