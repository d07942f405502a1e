"""Changes by RabbitMQ's tools: made by the owner of the object, and seen here when they are done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from services.common.arguments import policies
from services.common.errors import AccessRefused, BrokerError, InternalError, NotFound, PreconditionFailed, SyntaxFault
from services.common.topology.slots import first_slot
from services.mgmt.rabbitmq.forms import BindingForm, ExchangeForm, PolicyForm, QueueForm
from services.mgmt.rabbitmq.objects import DEFAULT, properties_key
from services.mgmt.rabbitmq.policies import GovernedQueues, row
from services.mgmt.tree.destinations import PREDECLARED
from services.mgmt.tree.house import House
from services.mgmt.tree.kept_arguments import dumped
from services.mgmt.tree.recorded import record
from services.rpc import queue_pb2 as pb
from services.rpc.router_pb2 import (
    Bind,
    CreateVirtualHost,
    DeclareExchange,
    DeclareQueue,
    DeleteExchange,
    DeleteVirtualHost,
    Policy,
    PolicyKey,
)

_REFUSED: Final[Mapping[int, tuple[type[BrokerError], str]]] = {
    pb.IN_USE: (PreconditionFailed, "in use"),
    pb.NOT_EMPTY: (PreconditionFailed, "not empty"),
}


class Changes:
    """Every call raises the BrokerError that the owner of the object answers with, or Unavailable."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._governed = GovernedQueues(house.mirror)

    # -------------------------------------------------------------- virtual hosts

    async def create_virtual_host(self, name: str) -> bool:
        """Whether there was none."""
        there = name in self._house.mirror.tables["virtual_host"]
        await self._house.topology.change(create_virtual_host=CreateVirtualHost(name=name))
        await self._house.seen("virtual_host", name, there=True)
        return not there

    async def delete_virtual_host(self, name: str) -> None:
        """With everything in it."""
        await self._house.topology.change(delete_virtual_host=DeleteVirtualHost(name=name))
        await self._house.seen("virtual_host", name, there=False)

    # -------------------------------------------------------------- exchanges

    async def declare_exchange(self, virtual_host: str, name: str, told: ExchangeForm) -> bool:
        """Whether there was none."""
        key = _key(virtual_host, name)
        there = name in PREDECLARED or key in self._house.mirror.tables["exchange"]
        declare = DeclareExchange(
            name=name,
            type=told.type,
            durable=told.durable,
            auto_delete=told.auto_delete,
            internal=told.internal,
            arguments=dumped(told.arguments),
        )
        await self._house.topology.change(virtual_host, declare_exchange=declare)
        if not there:
            await self._house.seen("exchange", key, there=True)
        return not there

    async def delete_exchange(self, virtual_host: str, name: str, *, if_unused: bool) -> None:
        """With its bindings."""
        if name in PREDECLARED or name in ("", DEFAULT):
            raise AccessRefused(f"exchange '{name}' is of every virtual host")
        await self._house.topology.change(virtual_host, delete_exchange=DeleteExchange(name=name, if_unused=if_unused))
        await self._house.seen("exchange", _key(virtual_host, name), there=False)

    # -------------------------------------------------------------- queues

    async def declare_queue(self, virtual_host: str, name: str, told: QueueForm, *, restored: bool = False) -> bool:
        """Whether there was none; `restored`: it may have the name that a broker made for it.

        Raises SyntaxFault without a name: the answer could not say which name it got.
        """
        if not name:
            raise SyntaxFault("a queue needs a name")
        declare = DeclareQueue(name=name, durable=told.durable, auto_delete=told.auto_delete, restored=restored)
        declare.arguments = dumped(told.arguments)
        reply = await self._house.topology.change(virtual_host, declare_queue=declare)
        await self._house.arrived("queue", lambda: self._has_queue(reply.queue.id))
        return reply.created

    async def delete_queue(self, queue: Mapping[str, Any], *, if_unused: bool, if_empty: bool) -> int:
        """By its owner, which alone knows whether it is empty. Returns how many messages went with it."""
        delete = pb.DeleteRequest(queue_id=first_slot(queue["id"]), if_unused=if_unused, if_empty=if_empty)
        reply = await self._house.purging.ask(queue["partition"], queue["name"], delete=delete)
        if reply.reason not in (pb.NONE, pb.UNKNOWN_QUEUE):
            kind, text = _REFUSED.get(reply.reason, (InternalError, reply.text or "not deleted"))
            raise kind(f"queue '{queue['name']}' in vhost '{queue['virtual_host']}' {text}")
        record(self._house.audit, "queue", "deleted", queue["virtual_host"], queue["name"])
        await self._house.arrived("queue", lambda: not self._has_queue(queue["id"]))
        return int(reply.message_count)

    async def purge_queue(self, queue: Mapping[str, Any]) -> int:
        """How many messages went."""
        count = await self._house.purging.purge(first_slot(queue["id"]), queue["partition"], queue["name"])
        record(self._house.audit, "queue", "purged", queue["virtual_host"], queue["name"])
        return count

    def _has_queue(self, number: int) -> bool:
        return bool(self._house.mirror.grouped("queue", "id").get(number))

    # -------------------------------------------------------------- policies

    async def set_policy(self, virtual_host: str, name: str, told: PolicyForm, *, operator: bool) -> bool:
        """Whether there was none of that name. It counts when this returns. Raises PreconditionFailed."""
        policy = Policy(name=name, pattern=told.pattern, apply_to=told.apply_to, priority=told.priority)
        policy.definition, policy.operator = policies.dumped(told.definition), operator
        reply = await self._house.topology.change(virtual_host, set_policy=policy)
        wanted = {**told.model_dump(by_alias=True), "vhost": virtual_host, "name": name}
        await self._house.arrived("policy", lambda: self._policy(virtual_host, name, operator=operator) == wanted)
        return reply.created

    async def clear_policy(self, virtual_host: str, name: str, *, operator: bool) -> None:
        """Raises NotFound."""
        await self._house.topology.change(virtual_host, clear_policy=PolicyKey(name=name, operator=operator))
        await self._house.arrived("policy", lambda: self._policy(virtual_host, name, operator=operator) is None)

    def _policy(self, virtual_host: str, name: str, *, operator: bool) -> Mapping[str, Any] | None:
        found = self._governed.policies(virtual_host).get(name, operator=operator)
        return row(found) if found else None

    # -------------------------------------------------------------- bindings

    async def bind(self, virtual_host: str, place: BindingEnds, told: BindingForm) -> str:
        """The key of the binding, whether it was there or not."""
        arguments = dumped(told.arguments)
        await self._house.topology.change(virtual_host, bind=place.bind(told.routing_key, arguments))
        text = arguments.decode()
        await self._house.arrived("binding", lambda: self._is_bound(virtual_host, place, told.routing_key, text))
        return properties_key(told.routing_key, text)

    async def unbind_told(self, virtual_host: str, place: BindingEnds, told: BindingForm) -> None:
        """By what it was bound with. Raises NotFound where there is none like that."""
        await self.unbind(virtual_host, place, properties_key(told.routing_key, dumped(told.arguments).decode()))

    async def unbind(self, virtual_host: str, place: BindingEnds, key: str) -> None:
        """Raises NotFound where there is none of that key."""
        value = self._binding(virtual_host, place, key)
        if value is None:
            raise NotFound(f"no binding '{key}' of '{place.source}' and '{place.destination}'")
        routing_key, arguments = value["routing_key"], value["arguments"]
        unbind = place.bind(routing_key, arguments.encode())
        await self._house.topology.change(virtual_host, unbind=unbind)
        await self._house.arrived("binding", lambda: not self._is_bound(virtual_host, place, routing_key, arguments))

    def _is_bound(self, virtual_host: str, place: BindingEnds, routing_key: str, arguments: str) -> bool:
        """Told by the record's key: what is asked after each of many changes must not look at all bindings."""
        parts = virtual_host, place.source, self._destination(virtual_host, place), routing_key, arguments
        return _key(*parts) in self._house.mirror.tables["binding"]

    def _binding(self, virtual_host: str, place: BindingEnds, key: str) -> Mapping[str, Any] | None:
        """Looked for among those of the destination, which are few: an exchange may have thousands."""
        destination = self._destination(virtual_host, place)
        for each in self._house.mirror.grouped("binding", "destination").get(destination, ()):
            value: Mapping[str, Any] = each.value
            there = (value["virtual_host"], value["source"]) == (virtual_host, place.source)
            if there and properties_key(value["routing_key"], value["arguments"]) == key:
                return value
        return None

    def _destination(self, virtual_host: str, place: BindingEnds) -> int | str | None:
        """As bindings name it: an exchange by its name, a queue by its id. None where there is no such queue."""
        if place.to_exchange:
            return place.destination
        queue = self._house.mirror.tables["queue"].get(_key(virtual_host, place.destination))
        return queue.value["id"] if queue else None


class BindingEnds:
    """Where a binding leads from, and where to."""

    def __init__(self, source: str, destination: str, *, to_exchange: bool) -> None:
        self.source = "" if source == DEFAULT else source
        self.destination = destination
        self.to_exchange = to_exchange

    def bind(self, routing_key: str, arguments: bytes) -> Bind:
        """As the router is told."""
        bind = Bind(source=self.source, destination=self.destination, to_exchange=self.to_exchange)
        bind.routing_key, bind.arguments = routing_key, arguments
        return bind


def _key(*parts: int | str | None) -> str:
    """Of the router's records."""
    return json.dumps(parts, ensure_ascii=False)
