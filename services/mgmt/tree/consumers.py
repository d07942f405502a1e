"""Consumer: as the queue processes tell them, five seconds old at most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.consumer import Consumer
from services.mgmt.tree.category import Keeper, Own, Source
from services.rpc import counts_pb2 as pb


class Consumers(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = Consumer
    fresh = frozenset({Source.COUNTS})

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        if parent:
            for each in self.house.counts.last.consumers.get(int(parent.incarnation), ()):
                yield _described(each), ""


def _described(consumer: pb.Consumer) -> dict[str, Any]:
    return {
        "name": f"{consumer.connection}|{consumer.tag}",
        "linkName": consumer.tag,
        "session": consumer.connection,
        "distributionMode": "COPY" if consumer.browse else "MOVE",
        "settlementMode": "AUTO" if consumer.settled else "MANUAL",
        "exclusive": consumer.exclusive,
        "priority": consumer.priority,
        "nonLive": not consumer.live,
        "suspended": not consumer.credit,
        "durable": False,
    }
