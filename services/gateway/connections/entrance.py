"""A port as this gateway serves it: its sockets, transports and protocols, mechanisms to sign in, and connections."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import structlog

from services.common import plugins
from services.common.errors import NotAllowed, PreconditionFailed, Unavailable
from services.common.ports.port import OF_SETTINGS, PLAIN
from services.gateway.connections.engines import speak
from services.gateway.sasl import judged_by, usable
from services.gateway.transport.address import written
from services.gateway.transport.arrival import Arrival, Offer
from services.gateway.transport.balancers import address_of
from services.gateway.transport.listening import listen_at

if TYPE_CHECKING:
    from services.common.ports.port import Port
    from services.gateway.connections.connection import Connection
    from services.gateway.connections.listener import Listener
    from services.gateway.connections.own_addresses import Address
    from services.gateway.protocols.engine import Engine
    from services.gateway.transport.kind import Transport

log = structlog.get_logger()

_BACKLOG = 1024
_DO = "let it speak TLS; or let passwords come unencrypted: HOPLINE_UNSECURED_PASSWORDS, or of the port"


class Entrance:
    """One port, from when it is opened until it is closed; its connections may stay longer."""

    def __init__(self, port: Port, listener: Listener) -> None:
        """Raises as `serve`."""
        self._listener = listener
        self._servers: list[asyncio.Server] = []
        self._taken: list[Address] = []
        self._inside: set[Connection] = set()
        self._full = False  # and the log has said so
        self.port = port
        self.serve(port)

    def serve(self, port: Port) -> None:
        """Applies the port's terms from now on, on the sockets that are open.

        Raises PreconditionFailed for what is not installed or set, Unavailable without its authentication provider, or
        as long as a transport that it names is not usable.
        """
        _protocols(port)
        self._transports = _transports(port, self._listener.transports)
        self.port = port
        if port.name not in OF_SETTINGS:  # those open in any case: clients are told what is missing when they sign in
            self._listener.authenticator.provider(self.provider)
        _check_mechanisms(port, self._judged)

    @property
    def provider(self) -> str:
        """The name of the authentication provider for clients of the port."""
        return self.port.authentication_provider or self._listener.settings.authentication_provider

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that are offered now, best first: providers come and go."""
        return self.port.mechanisms or self._judged

    @property
    def _judged(self) -> tuple[str, ...]:
        offered = self._listener.engines.mechanisms
        try:
            return judged_by(self._listener.authenticator.provider(self.provider), offered)
        except Unavailable:
            return offered

    async def open(self) -> None:
        """Listens; raises OSError where it cannot."""
        try:
            self._servers = await listen_at(self.port.host, self.port.port, self._listen)
        except BaseException:
            self.close()
            raise
        log.info("listening", port=self.port.name, at=self.addresses)

    async def _listen(self, host: str, port: int) -> asyncio.Server:
        several = self._listener.settings.gateways > 1  # and each listens here: the kernel chooses one for each client
        if several:
            self._taken.append(self._listener.own_addresses.take(host, port))
        loop = asyncio.get_running_loop()
        return await loop.create_server(self._accept, host, port, backlog=_BACKLOG, reuse_port=several)

    @property
    def addresses(self) -> list[str]:
        """The addresses at which it listens."""
        return [written(each.getsockname()) for server in self._servers for each in server.sockets]

    @property
    def amiss(self) -> str:
        """What is amiss though it listens; "" where nothing is."""
        return "; ".join(filter(None, (kind.amiss for kind in self._transports)))

    def close(self) -> None:
        """Listens no longer. Open connections stay."""
        for server in self._servers:
            server.close()
        self._servers = []
        self._listener.own_addresses.leave(self._taken)
        self._taken = []

    # -------------------------------------------------------------- clients

    def _accept(self) -> asyncio.Protocol:
        mechanisms = self.mechanisms
        engine = self._engine(mechanisms)
        connection = self._listener.admit(self, engine)
        speak(connection, engine)
        offer = self._offer(connection, mechanisms)
        return Arrival(connection, offer) if offer else connection

    def _engine(self, mechanisms: tuple[str, ...]) -> Engine:
        return self._listener.engines.create(self.port.protocols, mechanisms)

    def _offer(self, connection: Connection, mechanisms: tuple[str, ...]) -> Offer:
        kinds = [kind for kind in self._transports if kind.on]
        worst = usable(mechanisms, private=self._open_passwords, certified=False)
        settle = partial(self._settle, connection, mechanisms) if worst != mechanisms else None
        return Offer(self._listener.balancers, kinds, self.port.unsecured, settle)

    @property
    def _open_passwords(self) -> bool:
        wanted = self.port.unsecured_passwords
        return self._listener.settings.unsecured_passwords if wanted is None else wanted

    def _settle(self, connection: Connection, mechanisms: tuple[str, ...], secured: bool) -> None:
        """Decides what mechanisms a connection is offered, now that its transport and its address are known."""
        address = address_of(connection.peer_host)
        private = secured or self._open_passwords or (address is not None and address.is_loopback)
        names = usable(mechanisms, private=private, certified=bool(connection.certified))
        if names != mechanisms:
            speak(connection, self._engine(names))
        if not names:
            self._listener.few.say(log.info, "a client has no way to sign in", peer=connection.peer, do=_DO)

    def enter(self, connection: Connection) -> None:
        """Admits a client that has signed in; raises NotAllowed when the port's limit is reached."""
        limit, name = self.port.most, self.port.name
        if limit and len(self._inside) >= limit:
            if not self._full:
                what = "connections are refused: the limit of their port is reached"
                log.warning(what, port=name, limit=limit, do="add it again with a larger one: hopline ports add")
            self._full = True
            raise NotAllowed(f"connection refused: the limit of connections ({limit}) of port '{name}' is reached")
        self._inside.add(connection)

    def leave(self, connection: Connection) -> None:
        """The connection is gone."""
        self._inside.discard(connection)
        self._full = self._full and len(self._inside) >= self.port.most * 9 // 10


def _protocols(port: Port) -> None:
    installed = plugins.names("protocols")
    if unknown := [name for name in port.protocols if name not in installed]:
        raise PreconditionFailed(f"there is no protocol {', '.join(unknown)}; there are {', '.join(installed)}")
    for name in port.protocols:
        plugins.load("protocols", name)  # imported now, or the first client would have to wait for it


def _transports(port: Port, installed: dict[str, Transport]) -> list[Transport]:
    kinds = {name: kind for name, kind in installed.items() if port.takes(name)}
    if unknown := [name for name in port.transports if name not in {PLAIN, *installed}]:
        raise PreconditionFailed(
            f"there is no transport {', '.join(unknown)}; there are {', '.join((PLAIN, *installed))}"
        )
    for name in port.transports:
        if name != PLAIN and not kinds[name].on:
            raise PreconditionFailed(f"transport {name} is not there: set {kinds[name].needs}")
        if name != PLAIN and not kinds[name].usable:
            raise Unavailable(kinds[name].amiss)
    if not port.unsecured and not any(kind.secure for kind in kinds.values()):
        raise PreconditionFailed(f"{', '.join(port.transports)} goes over {PLAIN}, or over one that is secure, as tls")
    return list(kinds.values())


def _check_mechanisms(port: Port, offered: tuple[str, ...]) -> None:
    if unknown := [name for name in port.mechanisms if name not in offered]:
        there = ", ".join(offered)
        raise PreconditionFailed(f"{', '.join(unknown)} is not offered (HOPLINE_SASL_MECHANISMS): there are {there}")
