"""The sockets that clients connect to."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import structlog

from services.common import plugins
from services.common.containment import for_each
from services.common.errors import NotAllowed, Unavailable
from services.common.few_lines import FewLines
from services.common.files import files
from services.common.memory import available
from services.common.ports.port import AMQP, AMQPS, Port
from services.common.runtime import Tasks
from services.gateway.connections.by_rules import ByRules
from services.gateway.connections.connection import Connection
from services.gateway.connections.doors import Doors
from services.gateway.connections.entrance import Entrance
from services.gateway.connections.former import Former
from services.gateway.connections.incoming import Incoming
from services.gateway.connections.large_reads import ReadRoom
from services.gateway.connections.limited import LimitedConnections
from services.gateway.connections.own_addresses import OwnAddresses
from services.gateway.connections.turns import Turns
from services.gateway.transport.balancers import Balancers
from services.gateway.transport.outgoing import Outgoing

if TYPE_CHECKING:
    from services.common.authentication.authenticator import Authenticator
    from services.common.authentication.principal import Principal
    from services.common.config import Settings
    from services.common.limits import Limits
    from services.gateway.connections.engines import Engines
    from services.gateway.protocols.engine import Engine
    from services.gateway.sessions.broker import Broker
    from services.gateway.sessions.permitted import Permits
    from services.gateway.transport.kind import Transport

log = structlog.get_logger()

_FAREWELLS = 3.0  # seconds for requests to be done, and clients to answer connection.close, when the gateway stops
_LAST_WORDS = 2.0  # seconds for what is under way then


class Listener:
    """Accepts connections and knows those that are open."""

    def __init__(
        self,
        settings: Settings,
        broker: Broker,
        authenticator: Authenticator,
        engines: Engines,
        prefix: str,
        permits: Permits,
        limits: Limits,
    ) -> None:
        """`prefix` begins the name of every connection of this gateway. Raises CannotStart as transports do."""
        self.settings = settings
        self.broker = broker
        self.authenticator = authenticator
        self.engines = engines
        self.permits = permits
        self.incoming = Incoming(min(available() // 8, settings.incoming_memory), settings.incoming_timeout)
        self.outgoing = Outgoing(min(available() // 16, settings.outgoing_memory))
        self.turns = Turns()
        self.read_room = ReadRoom(self.turns, self.incoming)
        self.doors = Doors(settings.max_connections, files())
        self.former = Former()
        self.limited = LimitedConnections(limits, self.former)
        self.by_rules = ByRules(self.former)
        self.few = FewLines()  # limits log lines that peers can cause before they have signed in
        self.tasks = Tasks()
        self.balancers = Balancers(settings.proxy_sources, self.tasks)
        self.transports: dict[str, Transport] = {
            name: plugins.load("transports", name)(settings) for name in plugins.names("transports")
        }
        self._prefix = prefix
        self._numbers = itertools.count(1)
        self.own_addresses = OwnAddresses()
        self.entrances: dict[str, Entrance] = {}  # by the names of their ports
        self.unopened: dict[str, Port] = {}  # of the settings, at the start: `Ports` tries these again
        self._connections: dict[Connection, Entrance] = {}  # and the entrance by which each came
        self._empty = asyncio.Event()
        broker.close_virtual_host = self._close_virtual_host
        authenticator.close_user = self._close_user
        authenticator.close_provider = self._close_provider

    @property
    def connections(self) -> Iterable[Connection]:
        """All connections: open ones, and those in a handshake or ending."""
        return self._connections

    async def start(self) -> None:
        """Listens at the ports of the settings; raises OSError when one is taken.

        One that waits for a certificate is among `unopened`.
        """
        for port in self._of_settings():
            try:
                entrance = Entrance(port, self)
            except Unavailable:
                self.unopened[port.name] = port
                continue
            self.entrances[port.name] = entrance
            await entrance.open()

    def _of_settings(self) -> Iterator[Port]:
        """The ports of the settings. They are not validated here: the settings were."""
        settings = self.settings
        yield Port.model_construct(name=AMQP, host=settings.amqp_host, port=settings.amqp_port)
        if self.transports["tls"].on:
            there = tuple(name for name, kind in self.transports.items() if kind.on)
            yield Port.model_construct(name=AMQPS, host=settings.amqp_host, port=settings.amqps_port, transports=there)

    async def stop(self) -> None:
        """Tells every client, waits a moment for their farewell, closes."""
        for entrance in self.entrances.values():
            entrance.close()
        for_each("ending a connection", list(self._connections), lambda each: each.shut_down("broker is shutting down"))
        if self._connections:
            self._empty.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FAREWELLS):
                    await self._empty.wait()
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0)
        await self.tasks.finish(_LAST_WORDS)

    def admit(self, entrance: Entrance, engine: Engine) -> Connection:
        """A socket was accepted."""
        connection = Connection(self, engine, f"{self._prefix}{next(self._numbers)}")
        connection.login.port, connection.login.provider = entrance.port.name, entrance.provider
        self._connections[connection] = entrance
        return connection

    def enter(self, connection: Connection, virtual_host: str) -> None:
        """Admits a client that has signed in to a virtual host; raises NotAllowed when a limit is reached.

        A client that one limit refuses takes no place of another.
        """
        groups = self.permits.access.rules.principal(connection.user).groups | connection.login.principal.groups
        entrance = self._connections[connection]
        self.doors.check()
        try:
            self.limited.enter(connection, virtual_host)
            entrance.enter(connection)
            self.by_rules.enter(connection, virtual_host, groups)  # last: how often is not taken back
        except NotAllowed:
            self.limited.leave(connection)
            entrance.leave(connection)
            raise
        self.doors.enter(connection)

    def forget(self, connection: Connection) -> None:
        """A connection is gone."""
        if entrance := self._connections.pop(connection, None):
            entrance.leave(connection)
        self.incoming.forget(connection)
        self.limited.leave(connection)
        self.by_rules.leave(connection)
        self.doors.leave(connection)
        if not self._connections:
            self._empty.set()

    def signed_in(self) -> Iterator[Principal]:
        """The principals that are connected."""
        return (connection.login.principal for connection in self._connections)

    def _close_virtual_host(self, name: str) -> None:
        concerned = [connection for connection in self._connections if connection.virtual_host == name]
        for_each("ending a connection", concerned, lambda each: each.shut_down(f"vhost '{name}' is deleted"))

    def _close_user(self, provider: str, name: str, reason: str) -> None:
        self._close(reason, lambda each: each.user == name and each.login.principal.provider == provider)

    def _close_provider(self, name: str, reason: str) -> None:
        self._close(reason, lambda each: name in (each.login.provider, each.login.principal.provider))

    def _close(self, reason: str, concerns: Callable[[Connection], bool]) -> None:
        concerned = [connection for connection in self._connections if concerns(connection)]
        log.info("connections end", reason=reason, connections=len(concerned))
        for_each("ending a connection", concerned, lambda each: each.shut_down(reason))
