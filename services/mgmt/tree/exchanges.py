"""Exchange and its bindings: the router's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from services.common.access import questions
from services.common.access.action import Action, Kind, Property
from services.common.access.asked import Asked, Other
from services.common.errors import AccessRefused
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.exchange import Exchange
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.queue_arguments import attributes_in
from services.mgmt.tree.asked_about import properties_of
from services.mgmt.tree.category import Keeper, Own, Source
from services.mgmt.tree.counted import EXCHANGE
from services.mgmt.tree.destinations import PREDECLARED, is_exchange, is_queue
from services.mgmt.tree.kept_arguments import dumped, named
from services.mgmt.tree.mirror import Kept
from services.rpc.router_pb2 import Bind, DeclareExchange, DeleteExchange

_ALTERNATE: Final = "alternate-exchange"
_LIFETIMES: Final = {False: "PERMANENT", True: "DELETE_ON_NO_LINKS"}


class Exchanges(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = Exchange
    depends = ("virtual_host", "exchange", "binding", "queue")
    fresh = frozenset({Source.COUNTERS_APART})
    sums = EXCHANGE
    changes = True

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        host, of_host = (parent.actual["name"], parent.incarnation) if parent else ("", "")
        for name, type_ in PREDECLARED.items():
            yield {"name": name, "type": type_, **self._bindings(host, name)}, of_host
        for kept in self.house.mirror.grouped("exchange", "virtual_host").get(host, []):
            yield {**_described(kept.value), **self._bindings(host, kept.value["name"])}, of_host

    def present(self, found: ConfiguredObject) -> Mapping[str, int]:
        return {"bindingCount": len(self._of(found.path[1], found.actual["name"]))}

    def _of(self, host: str, name: str) -> list[Kept]:
        bindings = self.house.mirror.grouped("binding", "source").get(name, [])
        return [each for each in bindings if each.value["virtual_host"] == host]

    def _bindings(self, host: str, name: str) -> dict[str, Any]:
        queues = self.house.mirror.grouped("queue", "id")
        its = [(each, _binding(each.value, queues)) for each in self._of(host, name)]
        durable = [told for each, told in its if not each.transient]
        return {"bindings": [told for _, told in its], "durableBindings": durable}

    # -------------------------------------------------------------- changes

    def needs(self, action: Action, path: tuple[str, ...], wanted: Mapping[str, Any]) -> Iterable[Asked]:
        _, host, name, *_ = (*path, "", "", "")
        if action is Action.CREATE:
            alternate = named(_arguments(wanted).get(_ALTERNATE))
            its = (
                (Property.DURABLE, wanted.get("durable", True) is not False),
                (Property.TYPE, str(wanted.get("type", ""))),
            )
            yield questions.create_exchange(host, name, alternate, its)
        elif action is Action.DELETE:
            yield questions.delete_exchange(host, name)
        else:
            yield questions.update(Kind.EXCHANGE, host, name, wanted)

    def needs_to_invoke(self, operation: str, path: tuple[str, ...], arguments: Mapping[str, Any]) -> Iterable[Asked]:
        if operation not in {"bind", "unbind"}:
            yield from super().needs_to_invoke(operation, path, arguments)
            return
        _, host, name = path
        destination = str(arguments.get("destination", ""))
        other = Other(Kind.EXCHANGE if self._leads_to_exchange(host, destination) else Kind.QUEUE, destination)
        its = properties_of(self.house.mirror, host, destination) if other.kind is Kind.QUEUE else ()
        key = (Property.ROUTING_KEY, str(arguments.get("bindingKey", "")))
        yield questions.bind(Action[operation.upper()], host, name, other, (*its, key))

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:
        host = parent.actual["name"] if parent else ""
        if (policy := wanted.get("lifetimePolicy", "PERMANENT")) not in _LIFETIMES.values():
            raise IllegalConfiguration(
                f"attribute 'lifetimePolicy': {', '.join(_LIFETIMES.values())} can be, not {policy}"
            )
        declare = DeclareExchange(
            name=name,
            type=wanted["type"],
            durable=wanted.get("durable", True),
            auto_delete=policy != _LIFETIMES[False],
            internal=wanted.get("internal", False),
            arguments=dumped(_arguments(wanted)),
        )
        await self.house.topology.change(host, declare_exchange=declare)
        await self.house.seen("exchange", json.dumps([host, name], ensure_ascii=False), there=True)

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        """What can be changed of it is kept by management."""

    async def delete(self, found: ConfiguredObject) -> None:
        host, name = found.path[1], found.actual["name"]
        if name in PREDECLARED:
            raise AccessRefused(f"exchange '{name}' is of every virtual host")
        await self.house.topology.change(host, delete_exchange=DeleteExchange(name=name))
        await self.house.seen("exchange", json.dumps([host, name], ensure_ascii=False), there=False)

    async def invoke(self, found: ConfiguredObject, operation: str, arguments: Mapping[str, Any]) -> bool:
        host, source = found.path[1], found.actual["name"]
        key, destination = arguments.get("bindingKey", ""), arguments["destination"]
        there = [each for each in self._of(host, source) if self._fits(each, key, destination)]
        if operation == "unbind":
            await self._unbind(host, source, there)
            return bool(there)
        wanted = dumped(arguments.get("arguments", {}))
        if there and not arguments.get("replaceExistingArguments"):
            return False
        bind = Bind(source=source, destination=destination, routing_key=key, arguments=wanted)
        bind.to_exchange = self._leads_to_exchange(host, destination)
        await self.house.topology.change(host, bind=bind)
        await self._unbind(host, source, [each for each in there if each.value["arguments"].encode() != wanted])
        await self.house.arrived(
            "binding", lambda: any(self._fits(each, key, destination) for each in self._of(host, source))
        )
        return True

    async def _unbind(self, host: str, source: str, gone: list[Kept]) -> None:
        for each in gone:
            value, destination = each.value, self._name_of(each.value["destination"])
            unbind = Bind(source=source, destination=destination, routing_key=value["routing_key"])
            unbind.to_exchange = isinstance(value["destination"], str)
            unbind.arguments = value["arguments"].encode()
            await self.house.topology.change(host, unbind=unbind)
        await self.house.arrived("binding", lambda: not any(each in self._of(host, source) for each in gone))

    def _fits(self, kept: Kept, key: str, destination: str) -> bool:
        return kept.value["routing_key"] == key and self._name_of(kept.value["destination"]) == destination

    def _name_of(self, destination: int | str) -> str:
        return _name(destination, self.house.mirror.grouped("queue", "id"))

    def _leads_to_exchange(self, host: str, name: str) -> bool:
        """Broker-J looks for a queue first."""
        mirror = self.house.mirror
        return is_exchange(mirror, host, name) and not is_queue(mirror, host, name)


def _arguments(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """With the one that an attribute stands for."""
    table = dict(wanted.get("arguments", {}))
    if alternate := wanted.get("alternateBinding"):
        attributes_in(alternate)
        table[_ALTERNATE] = alternate.get("destination", "")
    return table


def _described(value: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        "name": value["name"],
        "type": value["type"],
        "durable": value["durable"],
        "lifetimePolicy": _LIFETIMES[value["auto_delete"]],
        "internal": value["internal"],
    }
    table = json.loads(value["arguments"]) if value["arguments"] else {}
    if isinstance(alternate := table.get(_ALTERNATE), str):
        found["alternateBinding"] = {"destination": alternate}
    return found | ({"arguments": table} if table else {})


def _binding(value: Mapping[str, Any], queues: Mapping[int, list[Kept]]) -> dict[str, Any]:
    arguments = json.loads(value["arguments"]) if value["arguments"] else {}
    destination = _name(value["destination"], queues)
    return {
        "name": value["routing_key"],
        "bindingKey": value["routing_key"],
        "destination": destination,
        "arguments": arguments,
    }


def _name(destination: int | str, queues: Mapping[int, list[Kept]]) -> str:
    """Bindings know a queue by its id."""
    if isinstance(destination, str):
        return destination
    return str(queues[destination][0].value["name"]) if queues.get(destination) else ""
