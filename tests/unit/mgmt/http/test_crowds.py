"""Many idle connections over HTTP, beside one with requests."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import Mock

import pytest
import structlog

from services.common.clients.healthz import ask
from services.common.config import Settings
from services.common.files import files
from services.mgmt.http import server
from services.mgmt.http.server import HttpServer
from tests.support.http_connected import http_connected

_LARGE = 8 << 20
_HEAD = b"POST /slow HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n"
_LONG = b"GET /long HTTP/1.1\r\nHost: here\r\n\r\n"


async def _application(scope: Any, receive: Any, send: Any) -> None:
    """A large answer at /large; else one when the whole request is there."""
    body = bytes(_LARGE) if scope["path"] == "/large" else b"{}"
    while (await receive()).get("more_body"):
        pass
    if scope["path"] == "/long":
        await asyncio.sleep(60)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


async def _refuse(_scope: Any, _receive: Any, send: Any) -> None:
    """Before the body is there."""
    await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"no"})


@asynccontextmanager
async def _serving(app: Any = _application, **settings: Any) -> AsyncIterator[int]:
    serving = HttpServer(Settings(http_host="127.0.0.1", http_port=0, **settings))
    serving.start(app)
    try:
        yield serving.port
    finally:
        await serving.stop()


@asynccontextmanager
async def _crowd(port: int, size: int, said: bytes = b"") -> AsyncIterator[list[socket.socket]]:
    """So many sockets, which say so much and no more."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(size)]
        for each in sockets:
            each.setblocking(False)
            await asyncio.get_running_loop().sock_connect(each, ("127.0.0.1", port))
            if said:
                await asyncio.get_running_loop().sock_sendall(each, said)
        yield sockets


async def _ended(each: socket.socket) -> bytes:
    """What it hears until it is closed."""
    heard, loop = b"", asyncio.get_running_loop()
    async with asyncio.timeout(10):
        with contextlib.suppress(ConnectionError):
            while more := await loop.sock_recv(each, 1 << 16):
                heard += more
    return heard


async def _answered(each: socket.socket) -> None:
    """By _refuse."""
    heard, loop = b"", asyncio.get_running_loop()
    async with asyncio.timeout(10):
        while not heard.endswith(b"no"):
            heard += await loop.sock_recv(each, 1000)


async def _trickled(peer: socket.socket, said: bytes) -> int:
    """How many octets it could send, twenty a second, until it was closed."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        for octet in said:
            await asyncio.get_running_loop().sock_sendall(peer, bytes([octet]))
            await asyncio.sleep(0.05)
            sent += 1
    return sent


def _is_closed(each: socket.socket) -> bool:
    try:
        return each.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


@pytest.mark.parametrize("said", [b"", b"GET /healthz HTTP/1.1\r\nHost: ", _HEAD + b"\r\nbegun"])
async def test_half_open(said: bytes) -> None:
    """A crowd from the same address, larger than may be, that asks for nothing whole: who asks is answered at once.

    Room for as many as may be is all that the crowd gets, and the log has one line.
    """
    files()  # for both ends
    with structlog.testing.capture_logs() as logged:
        bounds = {"http_max_connections": 500, "http_max_connections_each": 200}
        async with _serving(**bounds) as port, _crowd(port, 1500, said) as crowd:
            took = []
            for _ in range(20):
                began = time.monotonic()
                assert (await ask("127.0.0.1", port))[0] == 200
                took.append(time.monotonic() - began)
            assert sum(not _is_closed(each) for each in crowd) < 200
    assert sorted(took)[10] < 0.5
    assert [line["log_level"] for line in logged] == ["warning"]


async def test_who_sends_slowly_from_elsewhere() -> None:
    """Is not closed for a crowd of one address, and is answered when it has sent all."""
    slow = socket.socket()
    slow.setblocking(False)
    slow.bind(("127.0.0.2", 0))
    loop = asyncio.get_running_loop()
    async with _serving(http_max_connections=20, http_max_connections_each=0) as port:
        await loop.sock_connect(slow, ("127.0.0.1", port))
        await loop.sock_sendall(slow, _HEAD + b"\r\nbegun")
        async with _crowd(port, 60, _HEAD + b"\r\nbegun"):
            await loop.sock_sendall(slow, bytes(95))
            assert (await loop.sock_recv(slow, 1000)).startswith(b"HTTP/1.1 200")
    slow.close()


async def test_unfinished_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Are closed when there is too much of them, though there may be so many connections."""
    monkeypatch.setattr(server, "_BUDGET", 4 << 20)
    begun = _HEAD.replace(b"100", b"1000000") + b"\r\n" + bytes(500_000)
    async with _serving() as port, _crowd(port, 40, begun) as crowd:
        assert (await ask("127.0.0.1", port))[0] == 200
        async with asyncio.timeout(20):
            while (left := sum(not _is_closed(each) for each in crowd)) > 9:
                await asyncio.sleep(0.02)
        assert left


async def test_a_head_that_trickles() -> None:
    """A head has its time, however many parts it comes in, at the beginning and after an answer; who hurries stays."""
    async with _serving(http_head_timeout=1.5) as port, _crowd(port, 3) as (slow, later, silent):
        loop, head = asyncio.get_running_loop(), b"GET / HTTP/1.1\r\nX: "
        await loop.sock_sendall(later, head + b"\r\nHost: here\r\n\r\n")
        assert (await loop.sock_recv(later, 1 << 16)).startswith(b"HTTP/1.1 200")
        sent = await asyncio.gather(_trickled(slow, head + b"y" * 80), _trickled(later, head + b"y" * 80))
        assert max(sent) < 80
        assert await _ended(silent) == b""


async def test_what_is_left_of_a_body() -> None:
    """A body that goes on after its answer has no longer than a head."""

    async with _serving(_refuse, http_head_timeout=0.5) as port, _crowd(port, 1, _HEAD + b"\r\n") as (peer,):
        assert await _trickled(peer, b"." * 90) < 80


async def test_a_body_behind_its_answer() -> None:
    """It is looked at while it is small, and another request answered; who sends more is told that there is an end.

    What it sends besides is taken, so that it gets to read the answer, and not looked at: in pieces of one octet that
    would take a second for each mebibyte.
    """
    head, piece = b"PUT / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"
    async with _serving(_refuse) as port, _crowd(port, 1, head) as (peer,):
        loop = asyncio.get_running_loop()
        await _answered(peer)
        await loop.sock_sendall(peer, piece * 8000 + b"0\r\n\r\n" + head)
        await _answered(peer)
        began = time.process_time()
        await loop.sock_sendall(peer, piece * 2_000_000)
        assert await loop.sock_recv(peer, 1000) == b""
        assert time.process_time() - began < 2


async def test_large_reads() -> None:
    """After each of them it is the turn of others, however much there is to read."""
    connection, transport = http_connected(_refuse)
    connection.data_received(_HEAD.replace(b"100", b"9000000") + b"\r\n" + bytes(1 << 16))
    while not connection.cycle.response_complete:
        await asyncio.sleep(0)
    transport.reset_mock()
    connection.data_received(bytes(250_000))
    assert _calls(transport) == ["write_eof", "pause_reading"]
    await asyncio.sleep(0)
    assert _calls(transport)[2:] == ["resume_reading"]
    connection.connection_lost(None)


@pytest.mark.parametrize("more", [b"POST /long HTTP/1.1\r\nHost: here\r\nContent-Length: 900000\r\n\r\n", _LONG * 2])
async def test_large_reads_that_nobody_takes(more: bytes) -> None:
    """A body that the application does not read, requests behind one without an answer: no more is read of them."""
    taken = asyncio.Event()

    async def take(_scope: Any, _receive: Any, _send: Any) -> None:
        await taken.wait()

    connection, transport = http_connected(take)
    connection.data_received(more + bytes(250_000))
    for _ in range(5):
        await asyncio.sleep(0)
    assert _calls(transport) == ["pause_reading"]
    taken.set()
    connection.connection_lost(None)


def _calls(transport: Mock) -> list[str]:
    """Of what is done, not asked."""
    return [each[0] for each in transport.mock_calls if each[0] in {"pause_reading", "resume_reading", "write_eof"}]


async def test_who_asks_no_more() -> None:
    """A connection that is kept after an answer ends when nothing more is asked for."""
    asked = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
    async with _serving(http_idle_timeout=1) as port, _crowd(port, 1, asked) as (peer,):
        assert (await _ended(peer)).endswith(b"{}")


async def test_an_answer_that_is_not_read() -> None:
    """It ends after a while; one that is read, however slowly, comes whole."""
    asked = b"GET /large HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
    async with _serving(unread_timeout=1.5) as port, _crowd(port, 2, asked) as (one, other):
        loop, heard = asyncio.get_running_loop(), 0
        async with asyncio.timeout(60):
            while more := await loop.sock_recv(one, 1 << 18):
                heard += len(more)
                await asyncio.sleep(0.1)
        assert heard > _LARGE
        assert len(await _ended(other)) < _LARGE


async def test_who_does_not_read_makes_room() -> None:
    """Its answer is there: who has as many connections as may be, and reads none of them, keeps nobody out."""
    asked = b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n"
    async with _serving(http_max_connections=8, http_max_connections_each=0) as port, _crowd(port, 8, asked) as crowd:
        await asyncio.sleep(0.2)
        assert (await ask("127.0.0.1", port))[0] == 200
        assert len(await _ended(crowd[0])) < _LARGE


async def test_answers_that_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Are closed when there is too much of them, though there may be so many connections."""
    monkeypatch.setattr(server, "_BUDGET", 3 * _LARGE)
    asked = b"GET /large HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
    async with _serving() as port, _crowd(port, 8, asked) as crowd:
        await asyncio.sleep(0.5)
        whole = [len(await _ended(each)) > _LARGE for each in crowd]
        assert whole[0] is False
        assert whole[-1] is True


async def test_more_than_can_be_answered() -> None:
    """Where as many as may be wait for their answers, others are told so at once, or closed; and then served again."""
    async with _serving(http_max_connections_each=5) as port:
        async with _crowd(port, 5, _LONG):
            await asyncio.sleep(0.1)
            async with _crowd(port, 1) as (refused,):
                heard = await _ended(refused)
            assert heard.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after" in heard
        async with asyncio.timeout(5):
            while (await _answer(port)) != 200:
                await asyncio.sleep(0.01)


async def _answer(port: int) -> int:
    with contextlib.suppress(ConnectionError):
        return (await ask("127.0.0.1", port))[0]
    return 0
