"""A connection until its protocol's first byte: a balancer's header may come before that, TLS, a WebSocket's opening.

Only balancers whom the settings name are believed (HOPLINE_PROXY_SOURCES), and from them a header has to come, as the
specification demands: who could leave it out could let a client write its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple, cast

import structlog

from services.common.containment import contained
from services.common.errors import SyntaxFault
from services.gateway.transport import proxy_header
from services.gateway.transport.address import written
from services.gateway.transport.balancers import Balancers, address_of
from services.gateway.transport.opening import Opening, is_too_long, opening_of
from services.gateway.transport.secured import name_of_client, shake_hands

if TYPE_CHECKING:
    import ssl

    from services.gateway.connection import Connection
    from services.gateway.transport.certificates import Certificates

log = structlog.get_logger()

_DO = "HOPLINE_PROXY_SOURCES names balancers only, and those send PROXY protocol version 2 (HAProxy: send-proxy-v2)"


class Offer(NamedTuple):
    """What may come before a protocol's first byte.

    With `certificates`, a peer that begins with TLS has it; with `tls_only` nobody else is served. `origins` are those
    of pages that may open a WebSocket; without any there is none.
    """

    balancers: Balancers
    certificates: Certificates | None
    origins: Collection[str]
    tls_only: bool = False

    def __bool__(self) -> bool:
        return bool(self.balancers or self.certificates or self.origins)


class Arrival(asyncio.Protocol):
    """In front of a `Connection`."""

    def __init__(self, connection: Connection, offer: Offer) -> None:
        self._connection = connection
        self._offer = offer
        self._secured = False
        self._data = b""
        self._next: Callable[[], None] = self._look

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._connection.connection_made(transport)
        if self._offer.balancers and self._offer.balancers.has(self._connection.peer_host):
            self._next = self._read_header

    def data_received(self, data: bytes) -> None:
        self._data += data
        self._next()

    def _read_header(self) -> None:
        try:
            origin = proxy_header.read(self._data)
        except SyntaxFault as error:
            self._refuse(log.warning, "a balancer is not understood", reason=error.text, do=_DO)
            return
        if origin:
            self._data = self._data[origin.size :]
            self._come_from(origin)
            self._next = self._look
            self._look()

    def _come_from(self, origin: proxy_header.Origin) -> None:
        client, balancer = address_of(origin.host), address_of(self._connection.peer_host)
        # Another machine's loopback is none of ours: users who may come from here only do not come from there.
        if client and balancer and (balancer.is_loopback or not client.is_loopback):
            self._connection.peer_host = str(client)
            self._connection.peer = written((str(client), origin.port))

    def _look(self) -> None:
        """At the first bytes of the client's own, and again at those that come over TLS."""
        opening, offer = opening_of(self._data), self._offer
        if opening is Opening.TLS and offer.certificates and not self._secured:
            self._shake_hands(offer.certificates)
        elif opening and offer.tls_only and not self._secured:
            self._refuse(log.info, "a client that does not speak TLS is closed", do="this port is for TLS alone")
        elif opening is Opening.WEBSOCKET and offer.origins:
            self._open_websocket()
        elif opening:
            self._go_on()

    def _shake_hands(self, certificates: Certificates) -> None:
        too_long = is_too_long(self._data)
        if too_long:
            self._refuse(log.info, "TLS handshake failed", reason="the client's hello is too long")
        elif too_long is False:
            self._next = self._wait
            self._connection.listener.tasks.start(self._secure(certificates.context()), "TLS handshake")

    def _wait(self) -> None:
        """TLS takes what has come when it takes this one's place."""

    async def _secure(self, context: ssl.SSLContext) -> None:
        connection, settings = self._connection, self._connection.listener.settings
        try:
            transport, early = await shake_hands(
                self._transport, context, lambda: self._data, settings.handshake_timeout
            )
            connection.certified = name_of_client(transport, settings.tls_user)
        except Exception as failure:  # noqa: BLE001 - whatever it is: who is told of no end keeps its place for good
            self._not_secured(failure)
            return
        self._transport, self._secured, self._data, self._next = transport, True, b"", self._look
        connection.speak_over(transport)
        transport.set_protocol(self)
        early.give_way(self)

    def _not_secured(self, failure: Exception) -> None:
        if not isinstance(failure, OSError | ValueError):  # the latter of a certificate that nobody can read
            contained("shaking hands with a client", failure, peer=self._connection.peer)
        self._refuse(log.info, "TLS handshake failed", reason=str(failure) or type(failure).__name__)
        self._connection.connection_lost(failure)

    def _open_websocket(self) -> None:
        # Imported where somebody wants it: few do.
        from services.gateway.transport.websocket import WebSocket  # noqa: PLC0415

        websocket = WebSocket(self._transport, self._connection, self._offer.origins, self._no_websocket)
        self._connection.speak_over(websocket)
        self._transport.set_protocol(cast("asyncio.Protocol", websocket))
        websocket.data_received(self._data)

    def _no_websocket(self, reason: str) -> None:
        self._say(log.info, "a WebSocket is refused", reason=reason)
        self._connection.closing = True

    def _go_on(self) -> None:
        self._transport.set_protocol(self._connection)
        self._connection.data_received(self._data)

    def _refuse(self, level: Callable[..., object], event: str, **more: str) -> None:
        self._say(level, event, **more)
        self._connection.cut_off()

    def _say(self, level: Callable[..., object], event: str, **more: str) -> None:
        self._connection.listener.few.say(level, event, peer=self._connection.peer, **more)

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def connection_lost(self, failure: Exception | None) -> None:
        self._connection.connection_lost(failure)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()
