"""A connection until its protocol's first byte: a balancer's header may come before that, and transports (`kind.py`).

Only balancers that the settings name are trusted (HOPLINE_PROXY_SOURCES), and they have to send a header, as the
specification demands: through a balancer that left it out a client could send its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import structlog

from services.common.errors import SyntaxFault
from services.gateway.transport import proxy_header
from services.gateway.transport.address import written
from services.gateway.transport.balancers import Balancers, address_of

if TYPE_CHECKING:
    from services.gateway.transport.kind import Transport
    from services.gateway.transport.socket_user import SocketUser

log = structlog.get_logger()

_DO = "HOPLINE_PROXY_SOURCES names balancers only, and those send PROXY protocol version 2 (HAProxy: send-proxy-v2)"


class Offer(NamedTuple):
    """What may come before a protocol's first byte.

    A peer may begin with one of `transports`; unless `unsecured`, a protocol is spoken over secure ones only.
    `settle` is told whether the transport is secure, before the protocol's first byte.
    """

    balancers: Balancers
    transports: Sequence[Transport]
    unsecured: bool = True
    settle: Callable[[bool], None] | None = None

    def __bool__(self) -> bool:
        return bool(self.balancers or self.transports or not self.unsecured or self.settle)


class Arrival(asyncio.Protocol):
    """Stands in front of a `Connection`: `transport` carries it; `data` was read from it and not recognised yet."""

    transport: asyncio.Transport

    def __init__(self, connection: SocketUser, offer: Offer) -> None:
        self.connection = connection
        self.data = b""
        self._offer = offer
        self._secured = False
        self._taken: list[Transport] = []
        self._next = Arrival._look  # unbound: what refers to itself stays until the collector comes by, which is seldom

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.connection.connection_made(transport)
        if self._offer.balancers and self._offer.balancers.has(self.connection.peer_host):
            self._next = Arrival._read_header

    def data_received(self, data: bytes) -> None:
        self.data += data
        self._next(self)

    def _read_header(self) -> None:
        try:
            origin = proxy_header.read(self.data)
        except SyntaxFault as error:
            self.refuse(log.warning, "a balancer is not understood", reason=error.text, do=_DO)
            return
        if origin:
            self.data = self.data[origin.size :]
            self._come_from(origin)
            self._next = Arrival._look
            self._look()

    def _come_from(self, origin: proxy_header.Origin) -> None:
        client, balancer = address_of(origin.host), address_of(self.connection.peer_host)
        # A balancer's word for a loopback address is not taken unless it is local: loopback may be allowed more.
        if client and balancer and (balancer.is_loopback or not client.is_loopback):
            self.connection.peer_host = str(client)
            self.connection.peer = written((str(client), origin.port))

    def _look(self) -> None:
        """Looks at the client's first bytes, and again at the first bytes that come over a transport on top."""
        if not self.data:
            return
        told = [(kind, kind.begins(self.data)) for kind in self._offer.transports if kind not in self._taken]
        kind = next((kind for kind, begins in told if begins), None)
        if kind is None and any(begins is None for _, begins in told):
            return
        if not (self._offer.unsecured or self._secured or (kind and kind.secure)):
            self.refuse(log.info, "a client that does not speak TLS is closed", do="this port is for TLS alone")
        elif kind:
            self._taken.append(kind)
            self._next = Arrival._wait
            kind.take(self)
        else:
            self._go_on()

    def _wait(self) -> None:
        """Does nothing: a transport takes `data` when it takes this one's place."""

    # -------------------------------------------------------------- for transports

    def look_again(self, transport: asyncio.Transport) -> None:
        """Looks again at what comes over `transport`: it may begin with another transport."""
        self._secured = self._secured or self._taken[-1].secure
        self.transport, self.data, self._next = transport, b"", Arrival._look
        self.connection.speak_over(transport)
        transport.set_protocol(self)

    def leave_to(self, transport: asyncio.Transport) -> None:
        """A protocol is spoken over `transport`, which passes what it receives to the connection."""
        self.connection.speak_over(transport)
        self._settle()

    def refuse(self, level: Callable[..., object], event: str, **more: str) -> None:
        """Closes the socket, and logs why."""
        self.say(level, event, **more)
        self.connection.cut_off()

    def say(self, level: Callable[..., object], event: str, **more: str) -> None:
        """Logs an event. Any peer can cause it, so the lines of a kind are limited."""
        self.connection.listener.few.say(level, event, peer=self.connection.peer, **more)

    # -------------------------------------------------------------- to the connection

    def _settle(self) -> None:
        if self._offer.settle:
            self._offer.settle(self._secured)

    def _go_on(self) -> None:
        self._settle()
        self.transport.set_protocol(cast("asyncio.Protocol", self.connection))
        self.connection.data_received(self.data)

    def eof_received(self) -> bool:
        return self.connection.eof_received()

    def connection_lost(self, failure: Exception | None) -> None:
        self.connection.connection_lost(failure)

    def pause_writing(self) -> None:
        self.connection.pause_writing()

    def resume_writing(self) -> None:
        self.connection.resume_writing()
