"""VirtualHostNode and VirtualHost: the router's, made and deleted together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import regex

from services.common.access import questions
from services.common.access.action import Action, Kind
from services.common.access.asked import Asked
from services.common.errors import NotFound
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.virtual_host import VirtualHost, VirtualHostNode
from services.mgmt.tree.asked_about import properties
from services.mgmt.tree.category import Keeper, Own, Source
from services.rpc.router_pb2 import CreateVirtualHost, DeleteVirtualHost

PREDECLARED: Final[Mapping[str, str]] = {
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.headers": "headers",
    "amq.match": "headers",
    "amq.topic": "topic",
}
"""Exchanges that every virtual host has, which are no records."""
_DEFAULT: Final = "/"
_LONGEST_MATCH: Final = 0.05  # seconds


class VirtualHostNodes(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = VirtualHostNode
    depends = ("virtual_host",)

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:  # noqa: ARG002 - the broker
        for name in sorted(self.house.mirror.tables["virtual_host"]):
            yield {"name": name, "defaultVirtualHostNode": name == _DEFAULT}, ""


class VirtualHosts(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = VirtualHost
    depends = ("virtual_host",)
    fresh = frozenset({Source.COUNTS})
    changes = True

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        if parent and parent.actual["name"] in self.house.mirror.tables["virtual_host"]:
            yield {"name": parent.actual["name"]}, ""

    def measure(self, found: ConfiguredObject) -> Mapping[str, int]:
        name, mirror, rows = found.actual["name"], self.house.mirror, self.house.counts.last.rows
        queues = mirror.grouped("queue", "virtual_host").get(name, [])
        counted = [row for each in queues if (row := rows.get(each.value["id"]))]
        return {
            "queueCount": len(queues),
            "exchangeCount": len(mirror.grouped("exchange", "virtual_host").get(name, [])) + len(PREDECLARED),
            "totalDepthOfQueuesMessages": sum(row.ready + row.unsettled for row in counted),
            "totalDepthOfQueuesBytes": sum(row.bytes for row in counted),
        }

    def needs(self, action: Action, path: tuple[str, ...], wanted: Mapping[str, Any]) -> Iterable[Asked]:
        name = path[-1] if path else ""
        if action is Action.UPDATE:
            return (questions.update(Kind.VIRTUALHOST, name, name, wanted),)
        return (Asked(action, Kind.VIRTUALHOST, name, name),)

    def needs_to_invoke(self, operation: str, path: tuple[str, ...], arguments: Mapping[str, Any]) -> Iterable[Asked]:
        if operation not in {"clearQueues", "clearMatchingQueues"}:
            yield from super().needs_to_invoke(operation, path, arguments)
            return
        # Of those that are named also where there are none: who may not is not told which there are.
        there = self._queues(path[-1])
        for name in map(str, arguments.get("queues") or self._meant(path[-1], arguments)):
            its = properties(there[name]) if name in there else ()
            yield questions.of_queue(Action.PURGE, path[-1], name, its)

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:  # noqa: ARG002 - nothing more is said of it
        """Its node comes with it: there is none yet."""
        await self.house.topology.change(create_virtual_host=CreateVirtualHost(name=name))
        await self.house.seen("virtual_host", name, there=True)

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        """What can be changed of it is kept by management."""

    async def delete(self, found: ConfiguredObject) -> None:
        name = found.actual["name"]
        await self.house.topology.change(delete_virtual_host=DeleteVirtualHost(name=name))
        await self.house.seen("virtual_host", name, there=False)

    async def invoke(self, found: ConfiguredObject, operation: str, arguments: Mapping[str, Any]) -> int:  # noqa: ARG002 - both do the same
        # All of them are known before the first wait: one that is made meanwhile was not asked about.
        there = self._queues(found.actual["name"])
        gone = 0
        for queue in [there[name] for name in self._meant(found.actual["name"], arguments)]:
            with contextlib.suppress(NotFound):  # deleted since: none of its messages is left
                gone += await self.house.purging.purge(queue["id"], queue["partition"], queue["name"])
        return gone

    def _meant(self, virtual_host: str, arguments: Mapping[str, Any]) -> list[str]:
        there = self._queues(virtual_host)
        if (names := arguments.get("queues")) is not None:
            if unknown := [name for name in names if name not in there]:
                raise IllegalConfiguration(f"queues: there is no {unknown[0]!r}")
            return list(names)
        pattern = arguments.get("queueNamePattern", ".*")
        try:
            return [name for name in there if regex.fullmatch(pattern, name, timeout=_LONGEST_MATCH)]
        except (regex.error, TimeoutError) as error:
            raise IllegalConfiguration(f"queueNamePattern: {error}") from None

    def _queues(self, virtual_host: str) -> Mapping[str, Any]:
        queues = self.house.mirror.grouped("queue", "virtual_host").get(virtual_host, [])
        return {each.value["name"]: each.value for each in queues}
