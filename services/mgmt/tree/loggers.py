"""Loggers, of the broker and of virtual hosts: a mapping of standard error, and records (`../loggers`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from services.common.errors import AccessRefused
from services.common.log_lines import RECENT
from services.mgmt.loggers import files
from services.mgmt.loggers.desk import OpenLogger, kind_of
from services.mgmt.loggers.file import path_of
from services.mgmt.loggers.memory import MemorySink
from services.mgmt.loggers.records import LOGGER_KIND, RULE_KIND, LoggerRecord, Place, logger_in, record_of
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration, NotOffered
from services.mgmt.model.logger import (
    CONSOLE,
    BrokerLogger,
    BrokerLogInclusionRule,
    VirtualHostLogger,
    VirtualHostLogInclusionRule,
)
from services.mgmt.tree.category import Keeper, Own, Source
from services.mgmt.tree.counters import Counted
from services.mgmt.tree.mirror import host_incarnation
from services.rpc.store_pb2 import Record

STDERR: Final = "stderr"
_OF_ALL: Final = frozenset(ConfiguredObject.attributes)
_WITHOUT_HOSTS: Final = "virtualHostLogEventExcluded"
_COUNTS: Final = {"errorCount": "ERROR", "warnCount": "WARN"}


def place_of(found: ConfiguredObject) -> Place:
    """Of a logger."""
    return Place(found.path[1] if len(found.path) > 1 else "", found.actual["name"])


class _Loggers(Keeper):
    """What those of the broker and of virtual hosts have in common."""

    changes = True
    fresh = frozenset({Source.LOG_FILES})
    rules: ClassVar[type[ConfiguredObject]]
    """What is below one."""
    why_active: ClassVar[str] = "to delete it ends it, and so do rules that take nothing"

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        host = self._host(parent)
        for key, kept in sorted(self.house.mirror.tables[LOGGER_KIND].items()):
            place, its = Place(*json.loads(key)), logger_in(kept.raw)
            if its and (place.virtual_host, its.host) == host:
                yield self._told(place, its), its.host

    def _host(self, parent: ConfiguredObject | None) -> tuple[str, str]:
        """Name and incarnation of the virtual host that they are below."""
        if parent is None or parent.category == "Broker":
            return "", ""
        name = parent.actual["name"]
        return name, host_incarnation(self.house.mirror, name)

    def _told(self, place: Place, its: LoggerRecord) -> dict[str, Any]:
        told = {"name": place.name, "type": its.type, **its.attributes}
        told |= {} if place.virtual_host else {_WITHOUT_HOSTS: its.without_hosts}
        if its.type == "File":
            told["logFiles"] = self.house.loggers.files.last.get(place, [])
        trouble = _trouble(self.house.loggers.at(place))
        return told | ({"trouble": trouble, "state": "ERRORED"} if trouble else {})

    def counted(self, found: ConfiguredObject) -> Counted:
        its = self.house.loggers.at(place_of(found))
        return {name: {RECENT.process: its.counts[level]} for name, level in _COUNTS.items()} if its else {}

    # -------------------------------------------------------------- changes

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:
        host, incarnation = self._host(parent)
        place = Place(host, name)
        if wanted["type"] == CONSOLE:
            raise IllegalConfiguration("attribute 'type': standard error is there already, and there is one of it")
        defaults = kind_of(place, wanted["type"]).defaults
        made = LoggerRecord(
            type=wanted["type"], attributes=_of_type(wanted, defaults, wanted["type"]), host=incarnation
        )
        await self._put(place, made.model_copy(update={"without_hosts": wanted.get(_WITHOUT_HOSTS, False)}))

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        place, former = place_of(found), self._record(found)
        attributes = _of_type(wanted, former.attributes, former.type)
        changed = {"attributes": attributes, "without_hosts": wanted.get(_WITHOUT_HOSTS, former.without_hosts)}
        await self._put(place, former.model_copy(update=changed))

    def _record(self, found: ConfiguredObject) -> LoggerRecord:
        """Raises AccessRefused for standard error."""
        kept = self.house.mirror.tables[LOGGER_KIND].get(place_of(found).key)
        its = logger_in(kept.raw) if kept else None
        if its is None:
            raise AccessRefused(f"{found.category} '{found.actual['name']}' is how processes were started: it stays")
        return its

    async def _put(self, place: Place, made: LoggerRecord) -> None:
        """Nothing is changed where it could not be opened."""
        await self._check_alone(place, made)
        await asyncio.to_thread(kind_of(place, made.type).check, made.attributes, self.house.loggers.folder)
        kept = record_of(LOGGER_KIND, place.key, made)
        await self.house.store.put_records([kept])
        await self.house.arrived(LOGGER_KIND, lambda: self._raw(place) == kept.value)
        await self.house.loggers.opened(place, made)
        await self.house.loggers.files.look()

    async def _check_alone(self, place: Place, made: LoggerRecord) -> None:
        """Two that rolled one file would lose each other's lines."""
        if made.type == "File":
            there = [
                (other.name, its.attributes["fileName"])
                for key, kept in self.house.mirror.tables[LOGGER_KIND].items()
                if (other := Place(*json.loads(key))) != place and (its := logger_in(kept.raw)) and its.type == "File"
            ]
            await asyncio.to_thread(_check_path, made.attributes, self.house.loggers.folder, there)

    def _raw(self, place: Place) -> bytes | None:
        kept = self.house.mirror.tables[LOGGER_KIND].get(place.key)
        return kept.raw if kept else None

    async def delete(self, found: ConfiguredObject) -> None:
        """With its rules; its files stay."""
        self._record(found)
        place = place_of(found)
        keys = [json.loads(key) for key in self.house.mirror.tables[RULE_KIND]]
        rules = [key[2] for key in keys if key[:2] == list(place)]
        gone = [Record(kind=RULE_KIND, key=place.key_of(rule)) for rule in rules]
        await self.house.store.put_records(deletes=[Record(kind=LOGGER_KIND, key=place.key), *gone])
        for rule in rules:
            await self.house.forget(self.rules(found, {"name": rule}, found.incarnation))
        await self.house.seen(LOGGER_KIND, place.key, there=False)
        await self.house.loggers.has(LOGGER_KIND, place.key, None)

    # -------------------------------------------------------------- operations

    async def invoke(self, found: ConfiguredObject, operation: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 - each its own
        its = self.house.loggers.at(place_of(found))
        if operation == "getLogEntries" and its and isinstance(its.sink, MemorySink):
            return its.sink.entries(arguments["lastLogId"])
        if operation != "getLogEntries" and found.actual["type"] == "File":
            attributes, folder = self._record(found).attributes, self.house.loggers.folder
            return await asyncio.to_thread(lambda: files.content(path_of(attributes, folder), operation, arguments))
        raise NotOffered(f"{operation} is not of a logger of the type {found.actual['type']}")


def _check_path(attributes: Mapping[str, Any], folder: Path, there: Iterable[tuple[str, str]]) -> None:
    """Whether its file is that of none of those loggers."""
    wanted = path_of(attributes, folder)
    for name, other in there:
        if (folder / other).resolve() == wanted:
            raise IllegalConfiguration(f"attribute 'fileName': logger '{name}' writes {wanted}")


def _of_type(wanted: Mapping[str, Any], former: Mapping[str, Any], type_: str) -> dict[str, Any]:
    """What its type has. Raises IllegalConfiguration for others."""
    said = {key: value for key, value in wanted.items() if key not in _OF_ALL and key != _WITHOUT_HOSTS}
    if others := said.keys() - former.keys():
        raise IllegalConfiguration(f"attribute '{min(others)}': a logger of the type {type_} has none of that name")
    return {**former, **said}


def _trouble(its: OpenLogger | None) -> str:
    return "" if its is None else its.trouble or (its.sink.trouble if its.sink else "")


class BrokerLoggers(_Loggers):
    """See services.mgmt.tree.category.Category."""

    kind = BrokerLogger
    rules = BrokerLogInclusionRule

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        yield {"name": STDERR, "type": CONSOLE, "layout": self.house.settings.log_format}, ""
        yield from super().described(parent)


class VirtualHostLoggers(_Loggers):
    """See services.mgmt.tree.category.Category."""

    kind = VirtualHostLogger
    rules = VirtualHostLogInclusionRule
