"""Connections, as the tree shows them: asked of all gateways on request, and kept for a few seconds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from services.mgmt.tree.gateways import Gateways
from services.mgmt.tree.recent import Recent
from services.rpc.gateway_pb2 import Connection, Session


class ReportedConnection(NamedTuple):
    """What its gateway says of a connection, with its sessions by number: they are looked up one by one."""

    connection: Connection
    sessions: Mapping[int, Session]


class Connected(Recent):
    """`last` has what was told last: by virtual host, and by the connection's name."""

    def __init__(self, gateways: Gateways) -> None:
        super().__init__()
        self.last: dict[str, dict[str, ReportedConnection]] = {}
        self._gateways = gateways
        self.count_by_port = Counter[str]()

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

    async def _ask(self) -> None:
        found = defaultdict[str, dict[str, ReportedConnection]](dict)
        for each in await self._gateways.connections():
            found[each.virtual_host][each.name] = ReportedConnection(
                each, {session.number: session for session in each.sessions}
            )
        self.count_by_port = Counter(each.connection.port for told in found.values() for each in told.values())
        self.last = dict(found)
