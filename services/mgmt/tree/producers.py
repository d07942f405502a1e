"""Producer: where a session publishes, as gateways tell it, five seconds old at most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.connection import Producer
from services.mgmt.tree.category import Keeper, Own, Source
from services.mgmt.tree.connections import sessions_of
from services.rpc import gateway_pb2 as pb

_DEFAULT: Final = "amq.default"
"""What management calls the default exchange, which has no name."""


class Producers(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = Producer
    fresh = frozenset({Source.CONNECTIONS})

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        if parent and parent.parent:
            for each in self._told(parent):
                yield {**_described(each), **_whose(parent, parent.parent)}, ""

    def present(self, found: ConfiguredObject) -> Mapping[str, int]:
        told = {_name(each): each for each in self._told(found.parent)} if found.parent else {}
        its = told.get(found.actual["name"])
        return {"messagesOut": its.messages, "bytesOut": its.bytes} if its else {}

    def _told(self, session: ConfiguredObject) -> Iterable[pb.Producer]:
        told = sessions_of(self.house, session.parent).get(session.actual["channelId"])
        return told.producers if told else ()


def _name(told: pb.Producer) -> str:
    return told.name or told.exchange or _DEFAULT


def _described(told: pb.Producer) -> dict[str, Any]:
    to_queue = not told.exchange and bool(told.routing_key)
    return {
        "name": _name(told),
        "destination": told.routing_key if to_queue else told.exchange or _DEFAULT,
        "destinationType": "QUEUE" if to_queue else "EXCHANGE",
        "deliveryType": "STANDARD_DELIVERY",
        "durable": False,
    }


def _whose(session: ConfiguredObject, connection: ConfiguredObject) -> dict[str, Any]:
    return {
        "sessionId": session.value("id"),
        "sessionName": session.actual["name"],
        "principal": connection.actual["principal"],
        "remoteAddress": connection.actual["remoteAddress"],
    }
