"""Connections, as the tree shows them: asked of all gateways on request, and kept for a few seconds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import structlog

from services.common.errors import BrokerError, NotFound, Unavailable
from services.mgmt.tree.gateways import Gateways, gateway_of
from services.mgmt.tree.recent import Recent
from services.rpc.gateway_pb2 import Connection, Session

log = structlog.get_logger()


class ReportedConnection(NamedTuple):
    """What its gateway says of a connection, with its sessions by number: they are looked up one by one."""

    connection: Connection
    sessions: Mapping[int, Session]


class Closed(NamedTuple):
    """Names of the connections that were told to go, and of the gateways that do not answer."""

    names: set[str]
    silent: set[str]

    def check(self) -> None:
        """Raises Unavailable where some gateway does not answer: its connections stay."""
        if self.silent:
            raise Unavailable(
                f"{len(self.names)} connections were told to go; {', '.join(sorted(self.silent))} does not answer,"
                " and whoever is connected there stays; try again"
            )


class Connected(Recent):
    """`last` has what was told last: by virtual host, and by the connection's name.

    `silent` has the names of gateways that told nothing.
    """

    def __init__(self, gateways: Gateways) -> None:
        super().__init__()
        self.last: dict[str, dict[str, ReportedConnection]] = {}
        self.silent: frozenset[str] = frozenset()
        self._gateways = gateways
        self.count_by_port = Counter[str]()

    def left(self, names: Iterable[str]) -> list[str]:
        """Those that were told of, or whose gateway told nothing."""
        there = {name for told in self.last.values() for name in told}
        return [name for name in names if name in there or gateway_of(name) in self.silent]

    async def of_port(self, port: str) -> list[str]:
        """Names of those who are connected by it at this moment."""
        await self.now()
        there = (each.connection for told in self.last.values() for each in told.values())
        return [each.name for each in there if each.port == port]

    async def close(self, name: str, reason: str) -> None:
        """As Gateways says; it is not there any more."""
        await self._gateways.close(name, reason)
        for told in self.last.values():
            told.pop(name, None)

    async def close_all(self, names: Iterable[str], reason: str) -> Closed:
        """Of those that were told of last. A gateway that does not answer is asked once."""
        closed, silent = set(), set(self.silent)
        for name in names:
            if gateway_of(name) in silent:
                continue
            try:
                await self.close(name, reason)
                closed.add(name)
            except NotFound:  # it has gone meanwhile
                continue
            except BrokerError as failure:
                log.info("a gateway does not close a connection", connection=name, reason=failure.text)
                silent.add(gateway_of(name))
        return Closed(closed, silent)

    async def _ask(self) -> None:
        found = defaultdict[str, dict[str, ReportedConnection]](dict)
        heard = await self._gateways.heard()
        for each in heard.connections:
            found[each.virtual_host][each.name] = ReportedConnection(
                each, {session.number: session for session in each.sessions}
            )
        self.count_by_port = Counter(each.connection.port for told in found.values() for each in told.values())
        self.last, self.silent = dict(found), heard.silent
