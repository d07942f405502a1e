"""Connection and Session: as gateways tell them, five seconds old at most."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.connection import Connection, Session
from services.mgmt.tree.category import Keeper, Own, Source
from services.mgmt.tree.counted import CONNECTION
from services.mgmt.tree.gateways import gateway_of
from services.mgmt.tree.house import House
from services.mgmt.tree.mirror import OVERLAY
from services.rpc import gateway_pb2 as pb
from services.rpc.store_pb2 import Record

_REASON: Final = "closed via management"
_KEPT: Final = f'["{Connection.category}",'
_NAME: Final = -2
"""Its place in the key of what is kept of it, which ends with the incarnation."""


class Connections(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = Connection
    fresh = frozenset({Source.CONNECTIONS, Source.COUNTERS_APART})
    sums = CONNECTION
    why_active = "it is closed when it is deleted"
    changes = True

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        if parent:
            for each in list(self.house.connected.last.get(parent.actual["name"], {}).values()):
                yield _connection(each.connection), ""

    def present(self, found: ConfiguredObject) -> Mapping[str, int]:
        sessions = sessions_of(self.house, found).values()
        counts = {"sessionCount": len(sessions), "localTransactionOpen": sum(each.transaction for each in sessions)}
        return {**counts, **self._times(found)}

    def _times(self, found: ConfiguredObject) -> Mapping[str, int]:
        """An older gateway tells none."""
        told = self.house.connected.last.get(found.path[1], {}).get(found.actual["name"])
        if told is None or not told.connection.last_used_ms:
            return {}
        return {"lastIoTime": told.connection.last_io_ms, "lastUsedTime": told.connection.last_used_ms}

    async def tidy(self) -> None:
        kept = [json.loads(key) for key in self.house.overlays if key.startswith(_KEPT)]
        left = set(self.house.connected.left(each[_NAME] for each in kept))
        gone = [each for each in kept if each[_NAME] not in left]
        if gone:
            keys = [json.dumps(each, ensure_ascii=False) for each in gone]
            await self.house.store.put_records(deletes=[Record(kind=OVERLAY, key=key) for key in keys])

    async def delete(self, found: ConfiguredObject) -> None:
        await self.house.connected.close(found.actual["name"], _REASON)


class Sessions(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = Session
    fresh = frozenset({Source.CONNECTIONS})

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        for each in sessions_of(self.house, parent).values():
            yield _session(each), ""

    def measure(self, found: ConfiguredObject) -> Mapping[str, int]:
        told = sessions_of(self.house, found.parent).get(found.actual["channelId"])
        return {"consumerCount": told.consumers, "unacknowledgedMessages": told.unsettled} if told else {}

    async def invoke(self, found: ConfiguredObject, operation: str, arguments: Mapping[str, Any]) -> list[str]:  # noqa: ARG002 - it is getConsumers
        """As a queue calls them. None of an older gateway, which tells no single ones."""
        connection = found.path[-2]
        told = await self.house.gateways.connection(connection)
        sessions = {each.number: each for each in told.sessions} if told else {}
        session = sessions.get(found.actual["channelId"], pb.Session())
        return [f"{connection}|{each.tag}" for each in session.each]


def sessions_of(house: House, connection: ConfiguredObject | None) -> Mapping[int, pb.Session]:
    """By number, as their gateway told last."""
    if connection is None or connection.parent is None:
        return {}
    there = house.connected.last.get(connection.parent.actual["name"], {})
    told = there.get(connection.actual["name"])
    return told.sessions if told else {}


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
