"""TLS on a socket whose first bytes were read already, to know that it is TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import structlog

if TYPE_CHECKING:
    import ssl

    from services.gateway.connection import Connection

log = structlog.get_logger()


def secure(
    connection: Connection, socket: asyncio.Transport, context: ssl.SSLContext, read: Callable[[], bytes]
) -> None:
    """Has the connection speak over TLS on top of its socket once hands are shaken.

    `read` gives what the socket's protocol has read of it, all of it when TLS takes its place.
    """
    connection.listener.tasks.start(_shake_hands(connection, socket, context, read), "TLS handshake")


async def _shake_hands(
    connection: Connection, socket: asyncio.Transport, context: ssl.SSLContext, read: Callable[[], bytes]
) -> None:
    early = _Early()
    loop = asyncio.get_running_loop()
    patience = connection.listener.settings.handshake_timeout
    shaking = loop.create_task(loop.start_tls(socket, early, context, server_side=True, ssl_handshake_timeout=patience))
    # In one turn the loop puts TLS in place of the socket's protocol, and asks for two calls: of TLS, which takes the
    # socket, and of the socket, which is read again. What was read before goes in behind them, in the same turn, so
    # before anything that the socket reads next.
    loop.call_soon(loop.call_soon, _feed, socket, read)
    try:
        transport = await shaking
    except (OSError, TimeoutError) as failure:  # ssl.SSLError is an OSError
        _went_wrong(connection, failure)
        return
    if transport is None:  # uvloop's, when the client has ended the stream in between
        _went_wrong(connection, ConnectionResetError("the client went away"))
    else:
        early.give_way(connection, transport)


def _feed(socket: asyncio.Transport, read: Callable[[], bytes]) -> None:
    data = read()
    protocol = cast("asyncio.BufferedProtocol", socket.get_protocol())
    while data and not socket.is_closing():
        buffer = cast("memoryview", protocol.get_buffer(len(data)))
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        protocol.buffer_updated(count)
        data = data[count:]


def _went_wrong(connection: Connection, failure: Exception) -> None:
    reason = str(failure) or type(failure).__name__
    connection.listener.few.say(log.info, "TLS handshake failed", peer=connection.peer, reason=reason)
    connection.cut_off()
    connection.connection_lost(failure)


class _Early(asyncio.Protocol):
    """Keeps what comes in the turn in which hands are shaken, when nobody knows of the new transport yet."""

    def __init__(self) -> None:
        self._data = b""
        self._lost = False
        self._failure: Exception | None = None

    def data_received(self, data: bytes) -> None:
        self._data += data

    def connection_lost(self, failure: Exception | None) -> None:
        self._lost, self._failure = True, failure

    def give_way(self, connection: Connection, transport: asyncio.Transport) -> None:
        connection.speak_over(transport)
        transport.set_protocol(connection)
        if self._data:
            connection.data_received(self._data)
        if self._lost:
            connection.connection_lost(self._failure)
