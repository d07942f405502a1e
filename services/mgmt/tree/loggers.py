"""BrokerLogger: a mapping of how each process logs; BrokerLogInclusionRule: records that each process follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from services.common.errors import AccessRefused
from services.common.log_rules import RECORD_KIND, LogRule, of_settings, readable
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.logger import BrokerLogger, BrokerLogInclusionRule
from services.mgmt.tree.category import Keeper, Own
from services.rpc.store_pb2 import Record


class BrokerLoggers(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = BrokerLogger

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:  # noqa: ARG002 - the broker
        yield {"name": "stderr", "layout": self.house.settings.log_format}, ""


class BrokerLogInclusionRules(Keeper):
    """See services.mgmt.tree.category.Category. Those of the settings count where no record of their name says else."""

    kind = BrokerLogInclusionRule
    depends = (RECORD_KIND,)
    changes = True

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:  # noqa: ARG002 - there is one
        kept = {key: readable(each.raw) for key, each in sorted(self.house.mirror.tables[RECORD_KIND].items())}
        set_ = {key: rule for key, rule in kept.items() if rule}
        for name, rule in {**self._of_settings, **set_}.items():
            yield {"name": name, "loggerName": rule.logger, "level": rule.level}, ""

    @property
    def _of_settings(self) -> Mapping[str, LogRule]:
        return of_settings(self.house.settings.log_level)

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:  # noqa: ARG002 - there is one
        await self._put(name, LogRule(logger=wanted["loggerName"], level=wanted["level"]))

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        await self._put(found.actual["name"], LogRule(logger=found.actual["loggerName"], level=wanted["level"]))

    async def _put(self, name: str, rule: LogRule) -> None:
        record = Record(kind=RECORD_KIND, key=name, value=rule.to_json())
        await self.house.store.put_records([record])
        await self.house.arrived(RECORD_KIND, lambda: self._raw(name) == record.value)

    async def delete(self, found: ConfiguredObject) -> None:
        """One of the settings is what they say then."""
        name = found.actual["name"]
        if self._raw(name) is None:
            raise AccessRefused(f"rule '{name}' is as the settings say, and goes with them only: set another level")
        await self.house.store.put_records(deletes=[Record(kind=RECORD_KIND, key=name)])
        await self.house.seen(RECORD_KIND, name, there=False)

    def _raw(self, name: str) -> bytes | None:
        kept = self.house.mirror.tables[RECORD_KIND].get(name)
        return kept.raw if kept else None
