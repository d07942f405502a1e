"""Who sends what is no HTTP, or goes, in the middle of a request: it ends, and the log has no faults of ours."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from fastapi import FastAPI, Request

from services.mgmt.http.connection import HttpConnection
from services.mgmt.rest.bodies import body
from tests.support.http_connected import http_connected

_CHUNKED = b"POST /body HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
_GARBAGE = b"zz\r\n"


async def _refuse(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"no"})


def _reads() -> FastAPI:
    app = FastAPI(openapi_url=None)

    @app.post("/body")
    async def take(request: Request) -> int:
        return len(await body(request))

    return app


async def _after(connection: HttpConnection) -> None:
    async with asyncio.timeout(10):
        while connection.tasks:
            await asyncio.sleep(0)


async def test_garbage_behind_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    """There is no second answer to give: it is cut off."""
    caplog.set_level(logging.ERROR)
    connection, transport = http_connected(_refuse)
    connection.data_received(_CHUNKED)
    await _after(connection)
    connection.data_received(_GARBAGE)
    transport.abort.assert_called_once()
    connection.connection_lost(None)
    assert not caplog.records


@pytest.mark.parametrize("said", [_GARBAGE, b""])
async def test_in_a_body(said: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever waits for the rest of it is told that there is none."""
    caplog.set_level(logging.ERROR)
    connection, transport = http_connected(_reads())
    connection.data_received(_CHUNKED)
    await asyncio.sleep(0.01)
    if said:
        connection.data_received(said)
    connection.connection_lost(None)
    await _after(connection)
    assert not caplog.records
    written = b"".join(each.args[0] for each in transport.write.mock_calls)
    assert written.count(b"HTTP/1.1 400") == bool(said)


async def test_what_is_left_when_it_is_closed() -> None:
    """An answer that nobody reads has its time, however small it is: behind it the connection would stay."""
    connection, transport = http_connected(_refuse, unread=0.02)
    connection.data_received(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
    await _after(connection)
    transport.close.assert_called_once()
    await asyncio.sleep(0.1)
    transport.abort.assert_called_once()
    connection.connection_lost(None)
