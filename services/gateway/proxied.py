"""A connection that may come by a balancer: the balancer's header is read first, and then it is as any other.

Only those whom the settings name are believed (HOPLINE_PROXY_SOURCES), and from them a header has to come, as the
specification demands: who could leave it out could let a client write its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, cast

import structlog

from services.common.errors import SyntaxFault
from services.gateway import proxy_header

if TYPE_CHECKING:
    from services.gateway.connection import Connection

log = structlog.get_logger()

_DO = "HOPLINE_PROXY_SOURCES names balancers only, and those send PROXY protocol version 2 (HAProxy: send-proxy-v2)"


class Proxied(asyncio.Protocol):
    """In front of a `Connection` until it is known where its client is."""

    def __init__(self, connection: Connection, sources: Sequence[IPv4Network | IPv6Network]) -> None:
        self._connection = connection
        self._sources = sources
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._connection.connection_made(transport)
        peer = _address(self._connection.peer_host)
        if peer is None or not any(peer in network for network in self._sources):
            self._transport.set_protocol(self._connection)

    def data_received(self, data: bytes) -> None:
        self._data += data
        try:
            origin = proxy_header.read(self._data)
        except SyntaxFault as error:
            log.warning("a balancer is not understood", peer=self._connection.peer, reason=error.text, do=_DO)
            self._connection.cut_off()
            return
        if origin:
            self._go_on(origin)

    def _go_on(self, origin: proxy_header.Origin) -> None:
        client, balancer = _address(origin.host), _address(self._connection.peer_host)
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


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """None where there is none (a unix socket). An IPv4 address that a dual-stack socket wraps is itself."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
