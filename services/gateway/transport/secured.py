"""TLS on a socket whose first bytes were read already, to know that it is TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import ssl


async def shake_hands(
    socket: asyncio.Transport, context: ssl.SSLContext, read: Callable[[], bytes], patience: float
) -> tuple[asyncio.Transport, Early]:
    """Shakes hands; gives TLS on top of a socket, and its protocol for now, which keeps what comes over it.

    `read` gives all that the socket's former protocol has read by the time that TLS takes its place. Raises OSError,
    and TimeoutError after `patience` seconds.
    """
    early = Early()
    loop = asyncio.get_running_loop()
    shaking = loop.create_task(loop.start_tls(socket, early, context, server_side=True, ssl_handshake_timeout=patience))
    # In one turn the loop puts TLS in place of the socket's protocol, and schedules two calls: `connection_made` of
    # TLS, and `resume_reading` of the socket. What was read before is fed behind them, in the same turn, so before
    # anything that the socket reads next.
    loop.call_soon(loop.call_soon, _feed, socket, read)
    transport = await shaking  # ssl.SSLError is an OSError
    # If the client ends the stream in between, neither loop raises. asyncio's gives no transport then; uvloop's gives
    # one without a handshake, and never calls its protocol's `connection_lost`.
    if transport is None or transport.get_extra_info("ssl_object") is None:
        raise ConnectionResetError("the client went away")
    return transport, early


def name_of_client(transport: asyncio.Transport, kind: str) -> str:
    """The subject of the certificate that a client has shown, and that was verified: "" without.

    Its `kind` is its common name, or its distinguished name as RFC 4514 writes it.
    """
    shown = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
    if not shown:
        return ""
    # Imported late: the library takes memory, which a gateway has spent already where clients show certificates.
    from services.gateway.transport.subject import name_in  # noqa: PLC0415

    return name_in(shown, kind)


def _feed(socket: asyncio.Transport, read: Callable[[], bytes]) -> None:
    data = read()
    protocol = cast("asyncio.BufferedProtocol", socket.get_protocol())
    while data and not socket.is_closing():
        buffer = cast("memoryview", protocol.get_buffer(len(data)))
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        protocol.buffer_updated(count)
        data = data[count:]


class Early(asyncio.Protocol):
    """Keeps what comes in the turn in which the handshake ends, before the new transport has its protocol."""

    def __init__(self) -> None:
        self._data = b""
        self._lost = False
        self._failure: Exception | None = None

    def data_received(self, data: bytes) -> None:
        self._data += data

    def connection_lost(self, failure: Exception | None) -> None:
        self._lost, self._failure = True, failure

    def give_way(self, protocol: asyncio.Protocol) -> None:
        """Passes all that it has kept to the protocol that takes its place."""
        if self._data:
            protocol.data_received(self._data)
        if self._lost:
            protocol.connection_lost(self._failure)
