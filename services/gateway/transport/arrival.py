"""A connection that may come by a balancer: the balancer's header is read first, and then it is as any other.

Only those whom the settings name are believed (HOPLINE_PROXY_SOURCES), and from them a header has to come, as the
specification demands: who could leave it out could let a client write its own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import structlog

from services.common.errors import SyntaxFault
from services.gateway.transport import proxy_header
from services.gateway.transport.balancers import Balancers, address_of

if TYPE_CHECKING:
    from services.gateway.connection import Connection

log = structlog.get_logger()

_DO = "HOPLINE_PROXY_SOURCES names balancers only, and those send PROXY protocol version 2 (HAProxy: send-proxy-v2)"


class Proxied(asyncio.Protocol):
    """In front of a `Connection` until it is known where its client is."""

    def __init__(self, connection: Connection, balancers: Balancers) -> None:
        self._connection = connection
        self._balancers = balancers
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._connection.connection_made(transport)
        if not self._balancers.has(self._connection.peer_host):
            self._transport.set_protocol(self._connection)

    def data_received(self, data: bytes) -> None:
        self._data += data
        try:
            origin = proxy_header.read(self._data)
        except SyntaxFault as error:
            connection = self._connection
            event = "a balancer is not understood"
            connection.listener.few.say(log.warning, event, peer=connection.peer, reason=error.text, do=_DO)
            connection.cut_off()
            return
        if origin:
            self._go_on(origin)

    def _go_on(self, origin: proxy_header.Origin) -> None:
        client, balancer = address_of(origin.host), address_of(self._connection.peer_host)
        # Another machine's loopback is none of ours: users who may come from here only do not come from there.
        if client and balancer and (balancer.is_loopback or not client.is_loopback):
            self._connection.peer_host = str(client)
            self._connection.peer = f"{client}:{origin.port}"
        self._transport.set_protocol(self._connection)
        if rest := self._data[origin.size :]:
            self._connection.data_received(rest)

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def connection_lost(self, failure: Exception | None) -> None:
        self._connection.connection_lost(failure)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()
