"""Connection and Session: as gateways tell them, five seconds old at most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.connection import Connection, Session
from services.mgmt.tree.category import Keeper, Own, Source
from services.mgmt.tree.gateways import gateway_of
from services.rpc import gateway_pb2 as pb

_REASON = "closed via management"


class Connections(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = Connection
    fresh = frozenset({Source.CONNECTIONS})
    changes = True

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        if parent:
            for each in self.house.connected.last.get(parent.actual["name"], ()):
                yield _connection(each), ""

    def measure(self, found: ConfiguredObject) -> Mapping[str, int]:
        told = self.told(found)
        return {"sessionCount": len(told.sessions) if told else 0}

    async def delete(self, found: ConfiguredObject) -> None:
        await self.house.connected.close(found.actual["name"], _REASON)

    def told(self, found: ConfiguredObject) -> pb.Connection | None:
        """What its gateway says of a connection."""
        assert found.parent
        there = self.house.connected.last.get(found.parent.actual["name"], ())
        return next((each for each in there if each.name == found.actual["name"]), None)


class Sessions(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = Session
    fresh = frozenset({Source.CONNECTIONS})

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        for each in self._of(parent).values():
            yield _session(each), ""

    def measure(self, found: ConfiguredObject) -> Mapping[str, int]:
        told = self._of(found.parent).get(found.actual["channelId"], pb.Session())
        return {"consumerCount": told.consumers, "unacknowledgedMessages": told.unsettled}

    def _of(self, connection: ConfiguredObject | None) -> Mapping[int, pb.Session]:
        told = Connections(self.house).told(connection) if connection else None
        return {each.number: each for each in told.sessions} if told else {}


def _connection(told: pb.Connection) -> dict[str, object]:
    return {
        "name": told.name,
        "principal": told.user,
        "remoteAddress": told.peer,
        "clientId": told.client,
        "port": told.port,
        "protocol": told.protocol,
        "gateway": gateway_of(told.name),
        "durable": False,
    }


def _session(told: pb.Session) -> dict[str, object]:
    return {
        "name": str(told.number),
        "channelId": told.number,
        "prefetch": told.limit,
        "sharedPrefetch": told.shared_limit,
        "confirms": told.confirms,
        "transactional": told.transaction,
        "durable": False,
    }
