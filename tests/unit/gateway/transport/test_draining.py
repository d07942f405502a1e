from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from services.gateway.transport import draining
from services.gateway.transport.draining import Draining
from tests.support.programs import until

_GOODBYE = b"goodbye"
_MUCH = b"x" * (4 << 20)  # more than is read before the end
_SECONDS = 20
_CLOSED = 7  # TCP_CLOSE of Linux


class _Ends(asyncio.Protocol):
    """Says goodbye to the first word, and is done."""

    def __init__(self) -> None:
        self.ended = asyncio.get_running_loop().create_future()
        self.goodbye = _GOODBYE
        self.peer_first = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, _data: bytes) -> None:
        self._transport.write(self.goodbye)
        Draining(self._transport, self.ended.set_result).begin(peer_first=self.peer_first)


def _context(side: int) -> ssl.SSLContext:
    """Without certificates, which are not what this is about."""
    context = ssl.SSLContext(side)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AECDH:@SECLEVEL=0")
    return context


def _connect(port: int, tls: bool) -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", port), _SECONDS)
    return _context(ssl.PROTOCOL_TLS_CLIENT).wrap_socket(opened) if tls else opened


def _serve(tls: bool, use: Callable[[int, _Ends], Awaitable[None]]) -> None:
    """On the loop that services run on."""

    async def serve() -> None:
        protocol, context = _Ends(), _context(ssl.PROTOCOL_TLS_SERVER) if tls else None
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: protocol, "127.0.0.1", 0, ssl=context)
        async with server, asyncio.timeout(_SECONDS):
            await use(server.sockets[0].getsockname()[1], protocol)
            await protocol.ended

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())


@pytest.mark.parametrize("tls", [False, True], ids=["tcp", "tls"])
def test_last_words_reach_a_peer_that_still_sends(tls: bool) -> None:
    """It reads the goodbye and the end of the stream, not a reset, though it sent megabytes that are dropped."""

    def talk(port: int) -> bytes:
        with _connect(port, tls) as client:
            client.sendall(b"x")
            client.sendall(_MUCH)
            heard = b""
            while data := client.recv(1000):
                heard += data
            return heard

    async def use(port: int, _protocol: _Ends) -> None:
        assert await asyncio.to_thread(talk, port) == _GOODBYE

    _serve(tls, use)


@pytest.mark.parametrize("tls", [False, True], ids=["tcp", "tls"])
def test_it_does_not_wait_for_ever(tls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that does not end is cut off when the time is up."""
    monkeypatch.setattr(draining, "_SECONDS", 0.05)

    async def use(port: int, protocol: _Ends) -> None:
        client = await asyncio.to_thread(_connect, port, tls)
        client.sendall(b"x")
        await protocol.ended
        client.close()

    _serve(tls, use)


@pytest.mark.parametrize("tls", [False, True], ids=["tcp", "tls"])
def test_a_peer_that_said_goodbye_ends_first(tls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It hears no end of the stream for a moment, in which it can end it; it need not: then the end comes."""
    monkeypatch.setattr(draining, "_MOMENT", 0.3)

    def talk(port: int) -> tuple[bytes, float]:
        with _connect(port, tls) as client:
            client.sendall(b"x")
            assert client.recv(1000) == _GOODBYE
            since = time.monotonic()
            return client.recv(1000), time.monotonic() - since

    async def use(port: int, protocol: _Ends) -> None:
        protocol.peer_first = True
        heard, seconds = await asyncio.to_thread(talk, port)
        assert heard == b""
        assert seconds > 0.2

    _serve(tls, use)


@pytest.mark.parametrize("tls", [False, True], ids=["tcp", "tls"])
def test_a_peer_that_has_ended_is_not_awaited(tls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The socket is gone when the peer has ended it, long before the moment is over."""
    monkeypatch.setattr(draining, "_MOMENT", 10 * _SECONDS)

    def talk(port: int) -> None:
        with _connect(port, tls) as client:
            client.sendall(b"x")
            assert client.recv(1000) == _GOODBYE

    async def use(port: int, protocol: _Ends) -> None:
        protocol.peer_first = True
        await asyncio.to_thread(talk, port)
        await protocol.ended

    _serve(tls, use)


def test_a_peer_that_reads_slowly_reads_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written before the end is not cut off while it is read, however long that takes."""
    monkeypatch.setattr(draining, "_SECONDS", 0.3)
    much = bytes(32 << 20)

    def read_slowly(port: int) -> int:
        heard = 0
        with _connect(port, tls=False) as client:
            client.sendall(b"x")
            while data := client.recv(256 << 10):
                heard += len(data)
                time.sleep(0.01)
        return heard

    async def use(port: int, protocol: _Ends) -> None:
        protocol.goodbye = much
        assert await asyncio.to_thread(read_slowly, port) == len(much)

    _serve(False, use)


def test_it_does_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that goes on sending is cut off when it has sent more than the limit."""
    monkeypatch.setattr(draining, "_BYTES", 1 << 20)
    monkeypatch.setattr(draining, "_SECONDS", 10 * _SECONDS)

    def flood(port: int) -> None:
        with _connect(port, tls=False) as client:
            while True:
                client.sendall(_MUCH)

    async def use(port: int, _protocol: _Ends) -> None:
        with pytest.raises(ConnectionError):
            await asyncio.to_thread(flood, port)

    _serve(False, use)


async def test_a_peer_that_has_reset_it() -> None:
    """Ends at once, on asyncio's own loop too, which finds out when it closes the writing half."""

    class Held(_Ends):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self._transport.pause_reading()

    protocol = Held()
    protocol.goodbye = b""
    async with await asyncio.get_running_loop().create_server(lambda: protocol, "127.0.0.1", 0) as server:
        with socket.create_connection(server.sockets[0].getsockname(), _SECONDS) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            await until(lambda: hasattr(protocol, "_transport"))
        accepted = protocol._transport.get_extra_info("socket")
        await until(lambda: accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _CLOSED)
        protocol.data_received(b"x")
        await asyncio.wait_for(protocol.ended, _SECONDS)
