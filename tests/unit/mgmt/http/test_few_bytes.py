"""Few bytes that make much work: no peer keeps the server from others with them, signed in or not."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from unittest.mock import Mock

import pytest

from services.mgmt.http.parser import TURN
from tests.support.http_connected import http_connected

_HEAD = b"POST / HTTP/1.1\r\nHost: here\r\n"
_CHUNKED = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
_PIECE = b"1\r\nx\r\n"
_SPACES = b"a:" + b" " * 60_000 + b"\0\r\n\r\n"
_LINES = b"a:\r\n" * 1000 + b"\r\n"


async def _count(_scope: Any, receive: Any, send: Any) -> None:
    """Answers with the size of the body."""
    size, is_more = 0, True
    while is_more:
        part = await receive()
        size, is_more = size + len(part.get("body", b"")), part.get("more_body", False)
    said = b"%d" % size
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(said))]})
    await send({"type": "http.response.body", "body": said})


async def _refuse(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"no"})


def _written(transport: Mock) -> bytes:
    return b"".join(each.args[0] for each in transport.write.mock_calls)


async def _until(transport: Mock, said: bytes) -> int:
    """How often it was others' turn before that was answered."""
    turns = 0
    async with asyncio.timeout(10):
        while said not in _written(transport):
            turns += 1
            await asyncio.sleep(0)
    return turns


async def test_turns_within_a_read() -> None:
    """Others have theirs between chunks, and nothing more is read meanwhile; the body is taken whole."""
    connection, transport = http_connected(_count)
    connection.data_received(_CHUNKED + _PIECE * 8000 + b"0\r\n\r\n")
    assert len(connection.cycle.body) < TURN
    transport.pause_reading.assert_called_once()
    assert await _until(transport, b"8000") >= 8000 / TURN
    assert transport.pause_reading.call_count == transport.resume_reading.call_count
    connection.connection_lost(None)


async def test_behind_an_answer() -> None:
    """What is left of a read goes on, and a request behind it is answered."""
    connection, transport = http_connected(_refuse)
    connection.data_received((_CHUNKED + _PIECE * 1000 + b"0\r\n\r\n") * 3)
    async with asyncio.timeout(10):
        while _written(transport).count(b"HTTP/1.1 401") < 3:
            await asyncio.sleep(0)
    connection.connection_lost(None)


async def test_gone_between_turns() -> None:
    """Nothing more is looked at."""
    connection, transport = http_connected(_count)
    connection.data_received(_CHUNKED + _PIECE * 8000)
    connection.cut_off()
    connection.connection_lost(None)
    transport.reset_mock()
    await asyncio.sleep(0.01)
    transport.resume_reading.assert_not_called()


async def test_too_many_small_chunks() -> None:
    """Are refused, and it is said why; as many that are larger are a body."""
    connection, transport = http_connected(_count)
    connection.data_received(_CHUNKED + _PIECE * 30_000)
    await _until(transport, b"too many small chunks")
    transport.close.assert_called_once()
    assert _written(transport).startswith(b"HTTP/1.1 400 ")
    connection.connection_lost(None)
    connection, transport = http_connected(_count)
    connection.data_received(_CHUNKED + (b"20\r\n" + b"x" * 32 + b"\r\n") * 20_000 + b"0\r\n\r\n")
    await _until(transport, b"%d" % (32 * 20_000))
    connection.connection_lost(None)


@pytest.mark.parametrize("begun", [_HEAD, _CHUNKED + b"0\r\n"])
@pytest.mark.parametrize(("lines", "why"), [(_SPACES, b"spaces in a row"), (_LINES, b"more than 256 header lines")])
async def test_header_lines(begun: bytes, lines: bytes, why: bytes) -> None:
    """Those that would take long are not parsed, in a head or behind a body: seven seconds for spaces."""
    connection, transport = http_connected(_count)
    began = time.process_time()
    connection.data_received(begun + lines)
    assert time.process_time() - began < 1
    assert why in _written(transport)
    connection.connection_lost(None)


async def test_lines_as_many_as_may_be() -> None:
    """They are a head, with spaces and tabs as people write them."""
    connection, transport = http_connected(_count)
    connection.data_received(_HEAD + b"a: \t \tb\r\n" * 250 + b"\r\n")
    await _until(transport, b"HTTP/1.1 200")
    connection.connection_lost(None)
