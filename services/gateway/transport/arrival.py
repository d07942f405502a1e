"""A connection until its protocol's first byte: a balancer's header may come before that, and TLS.

Only balancers whom the settings name are believed (HOPLINE_PROXY_SOURCES), and from them a header has to come, as the
specification demands: who could leave it out could let a client write its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import structlog

from services.common.errors import SyntaxFault
from services.gateway.transport import proxy_header
from services.gateway.transport.balancers import Balancers, address_of
from services.gateway.transport.opening import Opening, opening_of
from services.gateway.transport.secured import secure

if TYPE_CHECKING:
    from services.gateway.connection import Connection
    from services.gateway.transport.certificates import Certificates

log = structlog.get_logger()

_DO = "HOPLINE_PROXY_SOURCES names balancers only, and those send PROXY protocol version 2 (HAProxy: send-proxy-v2)"


class Arrival(asyncio.Protocol):
    """In front of a `Connection`."""

    def __init__(
        self, connection: Connection, balancers: Balancers, certificates: Certificates | None, *, tls_only: bool
    ) -> None:
        """With `certificates`, a peer that begins with TLS has it; with `tls_only` nobody else is served."""
        self._connection = connection
        self._balancers = balancers
        self._certificates = certificates
        self._tls_only = tls_only
        self._data = b""
        self._next: Callable[[], None] = self._look

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._connection.connection_made(transport)
        if self._balancers and self._balancers.has(self._connection.peer_host):
            self._next = self._read_header
        elif self._certificates is None:
            self._transport.set_protocol(self._connection)

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
            self._connection.peer = f"{client}:{origin.port}"

    def _look(self) -> None:
        """At the first bytes of the client's own."""
        if self._certificates is None:
            self._go_on()
            return
        match opening_of(self._data):
            case Opening.TLS:
                self._next = self._wait
                secure(self._connection, self._transport, self._certificates.context(), lambda: self._data)
            case Opening.PLAIN if self._tls_only:
                self._refuse(log.info, "a client that does not speak TLS is closed", do="this port is for TLS alone")
            case Opening.PLAIN:
                self._go_on()

    def _wait(self) -> None:
        """TLS takes what has come when it takes this one's place."""

    def _go_on(self) -> None:
        self._transport.set_protocol(self._connection)
        if self._data:
            self._connection.data_received(self._data)

    def _refuse(self, level: Callable[..., object], event: str, **more: str) -> None:
        connection = self._connection
        connection.listener.few.say(level, event, peer=connection.peer, **more)
        connection.cut_off()

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def connection_lost(self, failure: Exception | None) -> None:
        self._connection.connection_lost(failure)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()
