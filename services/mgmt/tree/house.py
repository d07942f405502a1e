"""All that keepers of categories share: sources of state, and of changes. Started by the first request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from services.common.audit.audit import Audit
from services.common.clients.dry_run import DryRuns
from services.common.clients.overtaken import decided_again
from services.common.clients.ports import Ports
from services.common.clients.store import StoreClient
from services.common.clients.stores import Stores
from services.common.clock import epoch_ms
from services.common.config import Settings
from services.common.runtime import Tasks
from services.mgmt.access.grants import Grants
from services.mgmt.in_queues.messages import QueueMessages
from services.mgmt.loggers.desk import LoggerDesk
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.providers import Providers
from services.mgmt.tree.connected import Connected
from services.mgmt.tree.counters import Counters, Gather
from services.mgmt.tree.counts import Collector
from services.mgmt.tree.forgetting import Forgetting
from services.mgmt.tree.gateways import Gateways
from services.mgmt.tree.mirror import KINDS, OVERLAY, Kept, Mirror, host_incarnation
from services.mgmt.tree.purging import Purging
from services.mgmt.tree.topology import Topology
from services.mgmt.users import Users
from services.rpc.store_pb2 import Record, Unchanged

KEPT_HERE = ("description", "context")
"""Attributes that only management knows."""
MOST = 1 << 16
"""Bytes of what is kept of one object."""
LONGEST_NAME = 255
"""Characters of a name; bytes of a variable's: no map of AMQP has longer ones."""


Change = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""What is to be kept of an object, by what is kept of it."""


@dataclass
class House:
    """Services that own things, and what is known of them."""

    settings: Settings
    store: StoreClient
    topology: Topology
    counts: Collector
    purging: Purging
    users: Users
    grants: Grants
    providers: Providers
    ports: Ports
    audit: Audit
    stores: Stores
    gather: Gather
    dry_runs: DryRuns
    messages: QueueMessages

    def __post_init__(self) -> None:
        self.mirror = Mirror()
        self.gateways = Gateways(self.mirror, self.audit)
        self.connected = Connected(self.gateways)
        self.loggers = LoggerDesk(self.store, self.settings.log_path)
        self.counters = Counters(self.gather, self.settings)
        self._keeping: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by keys of objects
        self._tasks = Tasks()
        self._begun = False

    async def ready(self) -> None:
        """Returns when the tree can be read."""
        if not self._begun:
            self._begun = True
            self._tasks.start(self.mirror.follow(self.store.watch_records(KINDS)), "records of the tree")
            self._tasks.start(Forgetting(self.mirror, self.store).follow(), "what is kept of what is gone")
        await self.mirror.known()

    async def stop(self) -> None:
        """Follows nothing any more."""
        await self._tasks.stop()
        await self.counts.stop()
        await self.counters.stop()
        await self.loggers.stop()

    # -------------------------------------------------------------- what only management knows

    @property
    def overlays(self) -> Mapping[str, Kept]:
        """By the object's key."""
        return self.mirror.tables[OVERLAY]

    def overlay(self, found: ConfiguredObject) -> dict[str, Any]:
        """Of an object; empty where nothing is kept."""
        return self.kept_at(key_of(found))

    def kept_at(self, key: str) -> dict[str, Any]:
        """The same by the object's key."""
        kept = self.overlays.get(key)
        return dict(kept.value) if kept else {}

    async def keep(
        self, found: ConfiguredObject, changes: Mapping[str, Any], who: str, *, created: bool = False
    ) -> None:
        """Notes the user who changed an object, and the attributes that are kept here."""
        await self.change_kept(found, lambda _: changes, who, created=created)

    async def change_kept(self, found: ConfiguredObject, change: Change, who: str, *, created: bool = False) -> None:
        """The same of what depends on what is kept: one change after the other, of what the one before has left."""
        await self.change_at(key_of(found), change, who, created=created, transient=not found.value("durable"))

    async def change_at(
        self, key: str, change: Change, who: str, *, created: bool = False, transient: bool = False
    ) -> None:
        """The same by the object's key."""
        async with self._keeping.setdefault(key, asyncio.Lock()):
            await self._change_at(key, change, who, created=created, transient=transient)

    @decided_again
    async def _change_at(self, key: str, change: Change, who: str, *, created: bool, transient: bool) -> None:
        now, kept = epoch_ms(), self.kept_at(key)
        by = {"createdBy": who, "createdTime": now} if created else {}
        value = {**kept, **by, "lastUpdatedBy": who, "lastUpdatedTime": now, **change(kept)}
        record = Record(kind=OVERLAY, key=key, value=json.dumps(value, ensure_ascii=False).encode())
        record.transient = transient
        await self.mirror.put(self.store, [record], unchanged=[Unchanged(kind=OVERLAY, key=record.key)])
        await self.arrived(OVERLAY, lambda: self._has(record))

    async def forget(self, found: ConfiguredObject) -> None:
        """It is gone."""
        if (key := key_of(found)) in self.overlays:
            await self.store.put_records(deletes=[Record(kind=OVERLAY, key=key)])

    def _has(self, record: Record) -> bool:
        kept = self.overlays.get(record.key)
        return kept is not None and kept.raw == record.value

    async def seen(self, kind: str, key: str, *, there: bool) -> None:
        """Returns when the tree has a record, or has it no more."""
        await self.arrived(kind, lambda: (key in self.mirror.tables[kind]) is there)

    async def arrived(self, kind: str, holds: Callable[[], bool]) -> None:
        """Returns when a change of records of that kind is in the tree, or what another caller made of it since."""
        await self.mirror.arrived(self.store, kind, holds)


def key_of(found: ConfiguredObject) -> str:
    """Of the record of what is kept of an object. The next of its name is another one where its owner can tell."""
    return json.dumps([found.category, *found.path, found.incarnation], ensure_ascii=False)


def key_of_host(mirror: Mirror, name: str) -> str:
    """The same of a virtual host, by its name."""
    return json.dumps(["VirtualHost", name, name, host_incarnation(mirror, name)], ensure_ascii=False)


def check_length(wanted: Mapping[str, Any]) -> None:
    """Of what is kept here, and its names, before anything is done. Raises IllegalConfiguration."""
    if "" in wanted.get("context", ()):
        raise IllegalConfiguration("names in context have at least one character: nothing could name it")
    if any(len(name.encode()) > LONGEST_NAME for name in wanted.get("context", ())):
        raise IllegalConfiguration(f"names in context have at most {LONGEST_NAME} bytes")
    if len(json.dumps([wanted[key] for key in KEPT_HERE if key in wanted])) > MOST:
        raise IllegalConfiguration(f"description and context have more than {MOST} characters together")
