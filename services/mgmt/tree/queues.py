"""Queue: definitions are the router's, counts are of the queue processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from services.common.access import questions
from services.common.access.action import Action, Kind
from services.common.access.asked import Asked
from services.common.arguments import changed, dead_letters, queue
from services.common.arguments.alternates import ALTERNATE
from services.common.topology.slots import first_slot
from services.mgmt.locked import check_shared
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.queue import Queue
from services.mgmt.model.queue_arguments import attributes_of, changed_arguments, new_arguments
from services.mgmt.tree.asked_about import properties_of
from services.mgmt.tree.category import RESET, Keeper, Own, Source
from services.mgmt.tree.counted import QUEUE
from services.mgmt.tree.counters import sum_of
from services.mgmt.tree.counts import Row
from services.mgmt.tree.destinations import is_exchange, is_queue
from services.mgmt.tree.house import House
from services.mgmt.tree.kept_arguments import dumped
from services.mgmt.tree.mirror import Kept
from services.mgmt.tree.queue_messages import OF_MESSAGES
from services.mgmt.tree.recorded import record
from services.rpc.counts_pb2 import Consumer
from services.rpc.router_pb2 import ChangeQueue, DeclareQueue, DeleteQueue

_ABOUT_MESSAGES: Final = frozenset({"clearQueue", *OF_MESSAGES})
_OF_CONNECTIONS: Final = frozenset({"CONNECTION", "SESSION"})
_LINK: Final = "LINK"  # one consumer: whose it is, is seen as they come
_ENDS: Final = {
    "connection": "DELETE_ON_CONNECTION_CLOSE",
    "session": "DELETE_ON_SESSION_END",
    "link": "DELETE_ON_CREATING_LINK_CLOSE",
    # Of queues that links of AMQP 1.0 have made, when nobody uses them.
    "no-links": "DELETE_ON_NO_LINKS",
    "no-messages": "IN_USE",
    "no-links-or-messages": "IN_USE",
}
_LIFETIMES: Final = {False: "PERMANENT", True: "DELETE_ON_NO_OUTBOUND_LINKS"}


def _consumers(house: House, number: int) -> list[Consumer]:
    return house.counts.last.consumers.get(number, [])


_BINDINGS: Final = "bindingCount"
_OF_MESSAGES: Final[Mapping[str, Callable[[Row], int]]] = {
    "queueDepthMessages": lambda row: row.ready + row.unsettled,
    "queueDepthBytes": lambda row: row.bytes,
    "availableMessages": lambda row: row.ready,
    "unacknowledgedMessages": lambda row: row.unsettled,
}
_OF_CONSUMERS: Final[Mapping[str, Callable[[Sequence[Consumer]], int]]] = {
    "consumerCount": len,
    "consumerCountWithCredit": lambda consumers: sum(each.credit for each in consumers),
}
"""What its owner tells: of a queue that none has told of yet, nothing is known of either."""


class Queues(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = Queue
    depends = ("virtual_host", "queue")
    fresh = frozenset({Source.COUNTS, Source.COUNTERS_APART})
    sums = QUEUE
    why_active = "a queue process serves it as long as it is there"
    changes = True

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self._told: dict[str, dict[int, tuple[Kept, dict[str, Any]]]] = {}  # what one change leaves as it is

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        name = parent.actual["name"] if parent else ""
        former, told = self._told.get(name, {}), dict[int, tuple[Kept, dict[str, Any]]]()
        for kept in self.house.mirror.grouped("queue", "virtual_host").get(name, []):
            number, before = kept.value["id"], former.get(kept.value["id"])
            told[number] = before if before and before[0] is kept else (kept, _described(kept.value))
            yield told[number][1], str(number)
        if name not in self._told:
            hosts = self.house.mirror.tables["virtual_host"]
            self._told = {each: its for each, its in self._told.items() if each in hosts}
        self._told[name] = told

    def present(self, found: ConfiguredObject) -> Mapping[str, int]:
        number = int(found.incarnation)
        row, consumers = self.house.counts.last.rows.get(number), _consumers(self.house, number)
        counts = {name: of(row) for name, of in _OF_MESSAGES.items()} if row else {}
        counts |= {name: of(consumers) for name, of in _OF_CONSUMERS.items()} if row else {}
        return {**counts, _BINDINGS: self._bindings(number)}

    def _bindings(self, number: int) -> int:
        return len(self.house.mirror.grouped("binding", "destination").get(number, ()))

    def column(self, found: Sequence[ConfiguredObject], name: str) -> list[int | None]:
        """Of thousands: no other one is looked for, and what is the same for all of them is looked up once."""
        if name in QUEUE:
            return self._grown(found, name)
        numbers = [int(each.incarnation) for each in found]
        if name == _BINDINGS:
            bindings = self.house.mirror.grouped("binding", "destination")
            return [len(bindings.get(number, ())) for number in numbers]
        rows, consumers = self.house.counts.last.rows, self.house.counts.last.consumers.get
        if name in _OF_MESSAGES:
            of = _OF_MESSAGES[name]
            return [of(row) if (row := rows.get(number)) else None for number in numbers]
        its = _OF_CONSUMERS[name]
        return [its(consumers(number, ())) if number in rows else None for number in numbers]

    def _grown(self, found: Sequence[ConfiguredObject], name: str) -> list[int | None]:
        if not self.house.counters.knows(QUEUE[name]):
            return [None] * len(found)
        whose = [(each.parent.actual["name"] if each.parent else "", each.actual["name"]) for each in found]
        return [
            None if by_process is None else sum_of(by_process, each.actual.get(RESET, {}).get(name, {}))
            for each, by_process in zip(found, self.house.counters.column(QUEUE[name], whose), strict=True)
        ]

    def needs(self, action: Action, path: tuple[str, ...], wanted: Mapping[str, Any]) -> Iterable[Asked]:
        host, name = _place(path)
        if action is Action.CREATE:
            alternate = {ALTERNATE: its} if (its := wanted.get(ALTERNATE)) else {}
            said = {**(wanted.get("arguments") or {}), **alternate}
            letters = dead_letters.letters_of(said, name, partial(is_exchange, self.house.mirror, host))
            yield questions.create_queue(host, name, letters, _properties(wanted))
        elif action is Action.DELETE:
            yield questions.of_queue(action, host, name, properties_of(self.house.mirror, host, name))
        else:
            yield questions.update(Kind.QUEUE, host, name, wanted)
            alternate = wanted.get(ALTERNATE) or {}
            if (destination := alternate.get("destination")) is not None:
                there = is_exchange(self.house.mirror, host, str(destination))
                attributes = alternate.get("attributes")
                key = str(attributes.get("routingKey", "")) if isinstance(attributes, Mapping) else ""
                yield questions.publish(host, *((str(destination), key) if there else ("", str(destination))))

    def needs_to_invoke(self, operation: str, path: tuple[str, ...], arguments: Mapping[str, Any]) -> Iterable[Asked]:
        if operation == "clearQueue":
            yield questions.of_queue(Action.PURGE, *_place(path), properties_of(self.house.mirror, *_place(path)))
        elif of_messages := OF_MESSAGES.get(operation):
            host, name = _place(path)
            yield questions.of_queue(of_messages.needs, host, name, properties_of(self.house.mirror, host, name))
            if (destination := arguments.get("destination")) is not None:
                yield questions.publish(host, "", destination)
        else:
            yield from super().needs_to_invoke(operation, path, arguments)

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:
        host = parent.actual["name"] if parent else ""
        if wanted.get("exclusive", "NONE") not in {"NONE", _LINK}:
            raise IllegalConfiguration(
                "attribute 'exclusive': only a connected client can declare an exclusive queue, unless it is LINK"
            )
        if (policy := wanted.get("lifetimePolicy", "PERMANENT")) not in _LIFETIMES.values():
            raise IllegalConfiguration(f"attribute 'lifetimePolicy': {policy} is for queues of connections")
        declare = DeclareQueue(
            name=name,
            durable=wanted.get("durable", True),
            auto_delete=policy != _LIFETIMES[False],
            arguments=self._arguments(host, name, wanted),
        )
        reply = await self.house.topology.change(host, declare_queue=declare)
        await self.house.arrived("queue", lambda: bool(self.house.mirror.grouped("queue", "id").get(reply.queue.id)))

    def _arguments(self, host: str, name: str, wanted: Mapping[str, Any]) -> bytes:
        """As the router keeps them."""
        mirror = self.house.mirror
        self._check_alternate(host, name, wanted)
        if wanted.get("type") == "priority":
            wanted = {"priorities": 10, **wanted}
        table = new_arguments(wanted, lambda name: is_exchange(mirror, host, name))
        return dumped(table | ({queue.EXCLUSIVITY.name: _LINK} if wanted.get("exclusive") == _LINK else {}))

    def _check_alternate(self, host: str, name: str, wanted: Mapping[str, Any]) -> None:
        destination, mirror = (wanted.get("alternateBinding") or {}).get("destination", ""), self.house.mirror
        if not isinstance(destination, str):
            raise IllegalConfiguration("attribute 'alternateBinding': a map with a destination is wanted")
        if not destination or is_exchange(mirror, host, destination):
            return
        if destination == name:
            raise IllegalConfiguration("attribute 'alternateBinding': a queue is no alternate of itself")
        if not is_queue(mirror, host, destination):
            raise IllegalConfiguration(f"attribute 'alternateBinding': there is no {destination!r}")

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        """The queue heeds it when this returns, with the messages that it has."""
        host, number, mirror = found.path[1], int(found.incarnation), self.house.mirror
        self._check_alternate(host, found.actual["name"], wanted)
        told = changed_arguments(wanted, found.actual, lambda name: is_exchange(mirror, host, name))
        change = ChangeQueue(name=found.actual["name"], queue_id=number, changed=dumped(told))
        reply = await self.house.topology.change(host, change_queue=change)
        await self.house.arrived("queue", lambda: self._is(number, reply.queue.arguments))

    def _is(self, number: int, arguments: bytes) -> bool:
        """Or gone: whoever asked hears that next."""
        kept = self.house.mirror.grouped("queue", "id").get(number)
        return not kept or _now(kept[0].value) == arguments

    async def delete(self, found: ConfiguredObject) -> None:
        host, number = found.path[1], int(found.incarnation)
        delete = DeleteQueue(name=found.actual["name"], queue_id=number)
        await self.house.topology.change(host, delete_queue=delete)
        await self.house.arrived("queue", lambda: not self.house.mirror.grouped("queue", "id").get(number))

    async def invoke(self, found: ConfiguredObject, operation: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as said
        name = found.actual["name"]
        if operation in _ABOUT_MESSAGES:
            its_connections = found.actual.get("exclusive") in _OF_CONNECTIONS
            check_shared(found.path[1], name, found.actual["owner"] if its_connections else "")
        if operation == "clearQueue":
            number = int(found.incarnation)
            count = await self.house.purging.purge(first_slot(number), found.actual["partition"], name)
            record(self.house.audit, "queue", "purged", found.path[1], name)
            return count
        if of_messages := OF_MESSAGES.get(operation):
            return await of_messages.carry_out(self.house, found, arguments)
        return [
            f"{each.connection}|{each.tag}" for each in self.house.counts.last.consumers.get(int(found.incarnation), ())
        ]


def _described(value: Mapping[str, Any]) -> dict[str, Any]:
    now = _now(value)
    table = json.loads(now) if now else {}
    found = {
        "name": value["name"],
        "durable": value["durable"],
        "lifetimePolicy": _LIFETIMES[value["auto_delete"]],
        "messageDurability": "DEFAULT" if value["durable"] else "NEVER",
        "partition": value["partition"],
        "type": "standard",
    }
    if table:
        found |= {**attributes_of(table), "arguments": table}
    return found | _parties(value)


def _parties(value: Mapping[str, Any]) -> dict[str, Any]:
    """Whose it is alone, and with whose end it goes."""
    connection = value["exclusive_to"]
    former = ["connection", connection] if connection else ["", ""]
    (scope, owner), (until, _) = value.get("owner", former), value.get("until", former)
    found = {"exclusive": scope.upper(), "owner": owner} if scope else {}
    ends = until or value.get("unused", "")
    return found | ({"lifetimePolicy": _ENDS[ends]} if ends else {})


def _now(value: Mapping[str, Any]) -> bytes:
    """Arguments as they count, of a queue's record."""
    return changed.now(value["arguments"].encode(), value.get("changed", "").encode())


def _place(path: tuple[str, ...]) -> tuple[str, str]:
    """Virtual host and name, of a path below the broker; empty where it ends before."""
    _, host, name, *_ = (*path, "", "", "")
    return host, name


def _properties(wanted: Mapping[str, Any]) -> questions.Properties:
    temporary = wanted.get("lifetimePolicy", "PERMANENT") != "PERMANENT"
    durable = wanted.get("durable", True) is not False
    return questions.queue(durable=durable, exclusive=wanted.get("exclusive", "NONE") != "NONE", auto_delete=temporary)
