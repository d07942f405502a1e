"""The sockets that clients connect to."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import structlog

from services.common import plugins
from services.common.containment import for_each
from services.common.few_lines import FewLines
from services.common.memory import available
from services.common.runtime import Tasks
from services.gateway.connection import Connection
from services.gateway.doors import Doors, files
from services.gateway.incoming import Incoming
from services.gateway.outgoing import Outgoing
from services.gateway.transport.arrival import Arrival, Offer
from services.gateway.transport.balancers import Balancers
from services.gateway.transport.listening import listen_at
from services.gateway.turns import Turns

if TYPE_CHECKING:
    from services.common.config import Settings
    from services.gateway.authentication import Authenticator
    from services.gateway.broker import Broker
    from services.gateway.transport.kind import Transport
    from services.gateway.vocabulary import Engine

log = structlog.get_logger()

_BACKLOG = 1024
_LAST_WORDS = 2.0  # seconds for clients to answer connection.close when the gateway stops


class Listener:
    """Accepts connections and knows those that are open."""

    def __init__(
        self,
        settings: Settings,
        broker: Broker,
        authenticator: Authenticator,
        create_engine: Callable[[], Engine],
        prefix: str,
    ) -> None:
        """`prefix` begins the name of every connection of this gateway. Raises CannotStart as transports do."""
        self.settings = settings
        self.broker = broker
        self.authenticator = authenticator
        self.incoming = Incoming(min(available() // 8, settings.incoming_memory), settings.incoming_timeout)
        self.outgoing = Outgoing(min(available() // 16, settings.outgoing_memory))
        self.turns = Turns()
        self.doors = Doors(settings.max_connections, files())
        self.few = FewLines()  # of those that strangers cause
        self.tasks = Tasks()
        self.balancers = Balancers(settings.proxy_sources, self.tasks)
        self.transports: dict[str, Transport] = {
            name: plugins.load("transports", name)(settings) for name in plugins.names("transports")
        }
        self._create_engine = create_engine
        self._prefix = prefix
        self._numbers = itertools.count(1)
        self._connections: dict[Connection, None] = {}
        self._servers: list[asyncio.Server] = []
        self._empty = asyncio.Event()
        broker.close_virtual_host = self._close_virtual_host
        authenticator.close_user = self._close_user

    async def start(self) -> None:
        """Listens; raises OSError when a port is taken."""
        await self._open("AMQP", self.settings.amqp_port)
        if self.transports["tls"].on:
            await self._open("AMQP over TLS", self.settings.amqps_port, tls_only=True)

    async def _open(self, what: str, port: int, *, tls_only: bool = False) -> None:
        servers = await listen_at(self.settings.amqp_host, port, partial(self._listen, tls_only=tls_only))
        self._servers += servers
        names = [each.getsockname()[:2] for server in servers for each in server.sockets]
        log.info("listening", what=what, hosts=[host for host, _ in names], port=names[0][1])

    async def _listen(self, host: str, port: int, *, tls_only: bool = False) -> asyncio.Server:
        accept = partial(self._accept, tls_only=tls_only)
        return await asyncio.get_running_loop().create_server(accept, host, port, backlog=_BACKLOG)

    async def stop(self) -> None:
        """Tells every client, waits a moment for their farewell, closes."""
        for server in self._servers:
            server.close()
        for_each("ending a connection", list(self._connections), lambda each: each.shut_down("broker is shutting down"))
        if self._connections:
            self._empty.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), _LAST_WORDS)
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0)
        await self.tasks.finish(_LAST_WORDS)

    def forget(self, connection: Connection) -> None:
        """A connection is gone."""
        self._connections.pop(connection, None)
        self.incoming.forget(connection)
        self.doors.leave(connection)
        if not self._connections:
            self._empty.set()

    def _close_virtual_host(self, name: str) -> None:
        concerned = [connection for connection in self._connections if connection.virtual_host == name]
        for_each("ending a connection", concerned, lambda each: each.shut_down(f"vhost '{name}' is deleted"))

    def _close_user(self, name: str) -> None:
        concerned = [connection for connection in self._connections if connection.user == name]
        log.info("user is deleted", user=name, connections=len(concerned))
        for_each("ending a connection", concerned, lambda each: each.shut_down(f"user '{name}' is deleted"))

    def _accept(self, *, tls_only: bool) -> asyncio.Protocol:
        connection = Connection(self, self._create_engine(), f"{self._prefix}{next(self._numbers)}")
        self._connections[connection] = None
        transports = [kind for kind in self.transports.values() if kind.on]
        offer = Offer(self.balancers, transports, unsecured=not tls_only)
        return Arrival(connection, offer) if offer else connection
