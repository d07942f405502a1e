"""VirtualHostNode and VirtualHost: the router's, made and deleted together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from services.common.access import questions
from services.common.access.action import Action, Kind
from services.common.access.asked import Asked
from services.common.errors import NotFound
from services.common.topology.slots import first_slot
from services.mgmt.locked import check_shared
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.virtual_host import VirtualHost, VirtualHostNode
from services.mgmt.tree.asked_about import properties
from services.mgmt.tree.category import Keeper, Own, Source
from services.mgmt.tree.destinations import PREDECLARED
from services.mgmt.tree.idle import close_idle
from services.mgmt.tree.matching import fitting
from services.mgmt.tree.mirror import host_incarnation
from services.mgmt.tree.publishing import addressed, needs
from services.rpc.router_pb2 import CreateVirtualHost, DeleteVirtualHost

_DEFAULT: Final = "/"
_PURGES: Final = frozenset({"clearQueues", "clearMatchingQueues"})
_PUBLISH: Final = "publishMessage"
_CLOSED: Final = {*_PURGES, _PUBLISH}
"""What a user who may not open the virtual host may not even try."""


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
    fresh = frozenset({Source.COUNTS, Source.CONNECTIONS})
    why_active = "its queues are served as long as they are there; max-connections 0 (hopline limits) lets nobody in"
    changes = True

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        if parent and parent.actual["name"] in self.house.mirror.tables["virtual_host"]:
            name = parent.actual["name"]
            yield {"name": name}, host_incarnation(self.house.mirror, name)

    def measure(self, found: ConfiguredObject) -> Mapping[str, int]:
        name, mirror, rows = found.actual["name"], self.house.mirror, self.house.counts.last.rows
        queues = mirror.grouped("queue", "virtual_host").get(name, [])
        counted = [row for each in queues if (row := rows.get(each.value["id"]))]
        return {
            "connectionCount": len(self.house.connected.last.get(name, ())),
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

    def needs_to_read(self, operation: str, path: tuple[str, ...]) -> Iterable[Asked]:
        """A user who may not open it cannot find out which queues it has: not by refusals, nor in any other way."""
        return (questions.open_virtual_host(path[-1]),) if operation in _CLOSED else ()

    async def read(self, operation: str, path: tuple[str, ...], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if operation == _PUBLISH:
            return {"message": addressed(self.house.mirror, path[-1], arguments["message"])}
        return {"queues": await self._meant(path[-1], arguments)} if operation in _PURGES else arguments

    def needs_to_invoke(self, operation: str, path: tuple[str, ...], arguments: Mapping[str, Any]) -> Iterable[Asked]:
        if operation == _PUBLISH:
            yield from needs(path[-1], arguments["message"]) if arguments else ()
        elif operation in _PURGES:
            yield from self._needs_to_purge(path, arguments)
        else:
            yield from super().needs_to_invoke(operation, path, arguments)

    def _needs_to_purge(self, path: tuple[str, ...], arguments: Mapping[str, Any]) -> Iterable[Asked]:
        # For named ones also where they do not exist: a user without access is not told which there are.
        there = self._queues(path[-1])
        for name in arguments.get("queues", ()):
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

    async def invoke(self, found: ConfiguredObject, operation: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 - each its own
        if operation in _PURGES:
            return await self._purge(found, operation, arguments)
        if operation == "closeIdleConnections":
            return await close_idle(self.house.connected, found.actual["name"], arguments)
        names = list(self.house.connected.last.get(found.actual["name"], ()))
        if operation == "getConnections":
            return names
        return arguments["name"] if arguments["name"] in names else None

    async def _purge(self, found: ConfiguredObject, operation: str, arguments: Mapping[str, Any]) -> int:
        # All of them are known before the first wait: one that is made meanwhile was not asked about.
        there, names = self._queues(found.actual["name"]), arguments["queues"]
        if operation == "clearQueues" and (unknown := [name for name in names if name not in there]):
            raise IllegalConfiguration(f"queues: there is no {unknown[0]!r}")
        if operation == "clearQueues":
            for name in names:
                check_shared(found.actual["name"], name, there[name]["exclusive_to"])
        gone = 0
        for queue in [there[name] for name in names if name in there and not there[name]["exclusive_to"]]:
            with contextlib.suppress(NotFound):  # deleted since: none of its messages is left
                gone += await self.house.purging.purge(first_slot(queue["id"]), queue["partition"], queue["name"])
        return gone

    async def _meant(self, virtual_host: str, arguments: Mapping[str, Any]) -> list[str]:
        if (names := arguments.get("queues")) is not None:
            if not all(isinstance(name, str) for name in names):
                raise IllegalConfiguration("parameter 'queues' of clearQueues: a list of names is wanted")
            return list(dict.fromkeys(names))
        return await fitting(arguments["queueNamePattern"], list(self._queues(virtual_host)), "queueNamePattern")

    def _queues(self, virtual_host: str) -> Mapping[str, Any]:
        queues = self.house.mirror.grouped("queue", "virtual_host").get(virtual_host, [])
        return {each.value["name"]: each.value for each in queues}
