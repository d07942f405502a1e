"""Broker: the root, and what the process that manages knows of itself."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from typing import Any

from services.common.release import RELEASE
from services.mgmt.model.broker import Broker
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.context import visible
from services.mgmt.tree.category import Keeper, Own, Source
from services.mgmt.tree.counted import BROKER


class Brokers(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = Broker
    fresh = frozenset({Source.COUNTS, Source.COUNTERS})
    sums = BROKER
    why_active = "who has started its processes stops them"
    changes = True
    depends = ("virtual_host",)

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:  # noqa: ARG002 - it has none
        yield (
            {
                "name": "Broker",
                "buildVersion": RELEASE,
                "productVersion": RELEASE,
                "operatingSystem": platform.platform(),
                "numberOfCores": os.cpu_count() or 1,
            },
            "",
        )

    def children(self, parent: ConfiguredObject | None) -> Mapping[str, ConfiguredObject]:
        """Which process writes to the store is not on record: it is asked now."""
        made = super().children(parent)
        for each in made.values():
            each.actual = {**each.actual, "storeProcesses": self.house.stores.does()}
        return made

    def _make(self, parent: ConfiguredObject | None, own: dict[str, Any], incarnation: str) -> ConfiguredObject:
        found = super()._make(parent, own, incarnation)
        found.environment = visible(os.environ)
        return found

    def whose(self, found: ConfiguredObject) -> tuple[str, ...]:  # noqa: ARG002 - there is one
        return ()

    def present(self, found: ConfiguredObject) -> Mapping[str, int]:  # noqa: ARG002 - as above
        mirror, rows = self.house.mirror, self.house.counts.last.rows.values()
        return {
            "queueCount": len(mirror.tables["queue"]),
            "exchangeCount": len(mirror.tables["exchange"]) + 5 * len(mirror.tables["virtual_host"]),
            "totalDepthOfQueuesMessages": sum(row.ready + row.unsettled for row in rows),
            "totalDepthOfQueuesBytes": sum(row.bytes for row in rows),
        }

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        """What can be changed of it is kept by management."""
