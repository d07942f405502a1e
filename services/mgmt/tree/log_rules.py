"""Inclusion rules of loggers: records. Those of standard error each process follows by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from services.common.errors import AccessRefused
from services.common.log_rules import RECORD_KIND, LogRule, of_settings, readable
from services.mgmt.loggers.choosing import compiled
from services.mgmt.loggers.records import BY_WHOSE, RULE_KIND, Place, RuleRecord, record_of, rule_in
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.logger import BrokerLogInclusionRule, VirtualHostLogInclusionRule
from services.mgmt.tree.category import Keeper, Own
from services.mgmt.tree.house import House
from services.mgmt.tree.loggers import STDERR, place_of
from services.rpc.store_pb2 import Record

_WHOSE: Mapping[str, str] = {
    "username": "username",
    "connectionName": "connection",
    "remoteContainerId": "container",
}
"""Attributes, and fields of the record."""


class _LogRules(Keeper):
    """What those of the broker's loggers and of virtual hosts' have in common."""

    changes = True

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self._stamp: tuple[int, ...] = ()
        self._of_loggers: dict[tuple[Place, str], dict[str, Mapping[str, Any]]] = {}

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        assert parent
        place = place_of(parent)
        for name, told in self._kept().get((place, parent.incarnation), {}).items():
            yield {"name": name, **told, **self._trouble(place, name)}, parent.incarnation

    def _kept(self) -> Mapping[tuple[Place, str], Mapping[str, Mapping[str, Any]]]:
        """By logger and incarnation, then by name: read once after each change."""
        if (stamp := self.house.mirror.stamp((RULE_KIND,))) != self._stamp:
            self._stamp, self._of_loggers = stamp, {}
            for key, kept in sorted(self.house.mirror.tables[RULE_KIND].items()):
                *whose, name = json.loads(key)
                if rule := rule_in(kept.raw):
                    self._of_loggers.setdefault((Place(*whose), rule.host), {})[name] = _told(rule)
        return self._of_loggers

    def _trouble(self, place: Place, name: str) -> dict[str, Any]:
        its = self.house.loggers.at(place)
        trouble = its.choice.trouble_of(name) if its and its.choice else ""
        return {"trouble": trouble, "state": "ERRORED"} if trouble else {}

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:
        assert parent
        made = RuleRecord(
            logger=wanted.get("loggerName", self.kind.attributes["loggerName"].default),
            level=wanted.get("level", self.kind.attributes["level"].default),
            type=wanted.get("type", self.kind.types[0]),
            host=parent.incarnation,
            **_whose(wanted),
        )
        await self._put(place_of(parent), name, made)

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        assert found.parent
        place, name = place_of(found.parent), found.actual["name"]
        former = rule_in(self._raw(RULE_KIND, place.key_of(name)) or b"")
        if former is None:
            return  # it has gone meanwhile
        changed = {**({"level": wanted["level"]} if "level" in wanted else {}), **_whose(wanted)}
        await self._put(place, name, former.model_copy(update=changed))

    async def _put(self, place: Place, name: str, made: RuleRecord) -> None:
        said = {attribute: getattr(made, its) for attribute, its in _WHOSE.items()}
        for attribute, pattern in said.items():
            compiled(attribute, pattern)
        if made.type != BY_WHOSE and (others := [each for each, pattern in said.items() if pattern != ".*"]):
            raise IllegalConfiguration(f"attribute '{others[0]}': it is of rules of the type {BY_WHOSE}")
        kept = record_of(RULE_KIND, place.key_of(name), made)
        await self.house.store.put_records([kept])
        await self.house.arrived(RULE_KIND, lambda: self._raw(RULE_KIND, kept.key) == kept.value)
        await self.house.loggers.has(RULE_KIND, kept.key, kept.value)

    async def delete(self, found: ConfiguredObject) -> None:
        assert found.parent
        place, name = place_of(found.parent), found.actual["name"]
        gone = Record(kind=RULE_KIND, key=place.key_of(name))
        await self.house.store.put_records(deletes=[gone])
        await self.house.seen(RULE_KIND, gone.key, there=False)
        await self.house.loggers.has(RULE_KIND, gone.key, None)

    def _raw(self, kind: str, key: str) -> bytes | None:
        kept = self.house.mirror.tables[kind].get(key)
        return kept.raw if kept else None


def _told(rule: RuleRecord) -> dict[str, Any]:
    whose = {attribute: getattr(rule, its) for attribute, its in _WHOSE.items()} if rule.type == BY_WHOSE else {}
    return {"type": rule.type, "loggerName": rule.logger, "level": rule.level, **whose}


def _whose(wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {its: wanted[attribute] for attribute, its in _WHOSE.items() if attribute in wanted}


class BrokerLogInclusionRules(_LogRules):
    """See services.mgmt.tree.category.Category. Of standard error, two are of the settings; records may say else."""

    kind = BrokerLogInclusionRule

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        if parent and parent.actual["name"] != STDERR:
            yield from super().described(parent)
            return
        kept = {key: readable(each.raw) for key, each in sorted(self.house.mirror.tables[RECORD_KIND].items())}
        set_ = {key: rule for key, rule in kept.items() if rule}
        for name, rule in {**self._of_settings, **set_}.items():
            yield {"name": name, "loggerName": rule.logger, "level": rule.level}, ""

    @property
    def _of_settings(self) -> Mapping[str, LogRule]:
        return of_settings(self.house.settings.log_level)

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:
        if parent and parent.actual["name"] != STDERR:
            await super().create(parent, name, wanted)
        else:
            await self._create_own(name, wanted)

    async def _create_own(self, name: str, wanted: Mapping[str, Any]) -> None:
        if wanted.get("type") == BY_WHOSE:
            raise IllegalConfiguration(
                f"attribute 'type': {BY_WHOSE} is of other loggers: each process writes to standard error by itself"
            )
        attributes = self.kind.attributes
        logger = wanted.get("loggerName", attributes["loggerName"].default)
        await self._put_own(name, LogRule(logger=logger, level=wanted.get("level", attributes["level"].default)))

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        if found.parent and found.parent.actual["name"] != STDERR:
            await super().update(found, wanted)
        elif others := wanted.keys() - {"level"}:
            raise IllegalConfiguration(f"attribute '{min(others)}': it is of rules of the type {BY_WHOSE}")
        else:
            await self._put_own(found.actual["name"], LogRule(logger=found.actual["loggerName"], level=wanted["level"]))

    async def _put_own(self, name: str, rule: LogRule) -> None:
        kept = Record(kind=RECORD_KIND, key=name, value=rule.to_json())
        await self.house.store.put_records([kept])
        await self.house.arrived(RECORD_KIND, lambda: self._raw(RECORD_KIND, name) == kept.value)

    async def delete(self, found: ConfiguredObject) -> None:
        if found.parent and found.parent.actual["name"] != STDERR:
            await super().delete(found)
        else:
            await self._delete_own(found.actual["name"])

    async def _delete_own(self, name: str) -> None:
        """One of the settings is what they say then."""
        if self._raw(RECORD_KIND, name) is None:
            raise AccessRefused(f"rule '{name}' is as the settings say, and goes with them only: set another level")
        await self.house.store.put_records(deletes=[Record(kind=RECORD_KIND, key=name)])
        await self.house.seen(RECORD_KIND, name, there=False)


class VirtualHostLogInclusionRules(_LogRules):
    """See services.mgmt.tree.category.Category."""

    kind = VirtualHostLogInclusionRule
