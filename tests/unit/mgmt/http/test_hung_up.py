"""Who sends what is no HTTP, or goes, in the middle of a request: it ends, and the log has no faults of ours."""

from __future__ import annotations

import asyncio
import logging
from typing import Any
from unittest.mock import Mock

import pytest
from fastapi import FastAPI, Request
from uvicorn.server import ServerState

from services.mgmt.http.bodies import Bodies
from services.mgmt.http.connection import Bounds, Config, HttpConnection
from services.mgmt.http.doors import Doors
from services.mgmt.http.unread import Unread
from services.mgmt.rest.bodies import body

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


def _connected(app: Any, unread: float = 10) -> HttpConnection:
    doors = Doors(9, 0, 99)
    bounds = Bounds(doors, Bodies(1 << 20, doors.whose), Unread(1 << 20, doors.whose), 10, unread)
    connection, transport = HttpConnection(Config(bounds, app, log_config=None), ServerState(), {}), Mock()
    transport.get_extra_info.return_value = None
    transport.get_write_buffer_size.return_value = 100
    transport.is_closing.return_value = False
    for end in ("close", "abort"):
        getattr(transport, end).side_effect = lambda: transport.is_closing.configure_mock(return_value=True)
    connection.connection_made(transport)
    return connection


async def _after(connection: HttpConnection) -> None:
    async with asyncio.timeout(10):
        while connection.tasks:
            await asyncio.sleep(0)


async def test_garbage_behind_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    """There is no second answer to give: it is cut off."""
    caplog.set_level(logging.ERROR)
    connection = _connected(_refuse)
    connection.data_received(_CHUNKED)
    await _after(connection)
    connection.data_received(_GARBAGE)
    connection.transport.abort.assert_called_once()  # type: ignore[attr-defined]
    connection.connection_lost(None)
    assert not caplog.records


@pytest.mark.parametrize("said", [_GARBAGE, b""])
async def test_in_a_body(said: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever waits for the rest of it is told that there is none."""
    caplog.set_level(logging.ERROR)
    connection = _connected(_reads())
    connection.data_received(_CHUNKED)
    await asyncio.sleep(0.01)
    if said:
        connection.data_received(said)
    connection.connection_lost(None)
    await _after(connection)
    assert not caplog.records
    written = b"".join(each.args[0] for each in connection.transport.write.mock_calls)  # type: ignore[attr-defined]
    assert written.count(b"HTTP/1.1 400") == bool(said)


async def test_what_is_left_when_it_is_closed() -> None:
    """An answer that nobody reads has its time, however small it is: behind it the connection would stay."""
    connection = _connected(_refuse, unread=0.02)
    connection.data_received(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
    await _after(connection)
    connection.transport.close.assert_called_once()  # type: ignore[attr-defined]
    await asyncio.sleep(0.1)
    connection.transport.abort.assert_called_once()  # type: ignore[attr-defined]
    connection.connection_lost(None)
