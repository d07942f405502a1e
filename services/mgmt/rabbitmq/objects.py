"""What virtual hosts hold, in RabbitMQ's words: made of the records that the tree follows."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote_plus

from services.common.errors import NotFound
from services.mgmt.locked import check_shared
from services.mgmt.model.steps import Steps
from services.mgmt.rabbitmq.columns import placed
from services.mgmt.rabbitmq.plain import plain
from services.mgmt.rabbitmq.policies import GovernedQueues
from services.mgmt.tree.destinations import PREDECLARED
from services.mgmt.tree.house import House
from services.mgmt.tree.mirror import Kept

Row = dict[str, Any]
_R = TypeVar("_R", bound=Mapping[str, Any])

DEFAULT: Final = "amq.default"
"""What paths call the exchange without a name."""
_PREDECLARED: Final[Mapping[str, str]] = {"": "direct", **PREDECLARED}
_NO_ARGUMENTS: Final = "~"


class Objects:
    """Read from what is known now, without waiting."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._rows: dict[str, _Rows] = {}  # of queues, by virtual host
        self.governed = GovernedQueues(house.mirror)

    async def known(self, *, counted: bool = False) -> None:
        """Returns when there is something to read; counts of queues are five seconds old at most then."""
        await self._house.ready()
        if counted:
            await self._house.counts.fresh()

    # -------------------------------------------------------------- virtual hosts

    def virtual_hosts(self) -> list[str]:
        """By name."""
        there = self._house.mirror.tables["virtual_host"]
        for gone in self._rows.keys() - there.keys():
            del self._rows[gone]
        return sorted(there)

    def has_virtual_host(self, name: str) -> bool:
        """Whether there is one of that name."""
        return name in self._house.mirror.tables["virtual_host"]

    def check_virtual_host(self, name: str) -> None:
        """Raises NotFound where there is none of that name."""
        if not self.has_virtual_host(name):
            raise NotFound(f"no vhost '{name}'")

    # -------------------------------------------------------------- exchanges

    def exchanges(self, virtual_host: str) -> list[Row]:
        """Those that every virtual host has come first."""
        kept = self._house.mirror.grouped("exchange", "virtual_host").get(virtual_host, ())
        own = (_predeclared(virtual_host, name, type_) for name, type_ in _PREDECLARED.items())
        return [*own, *(_exchange(each.value) for each in kept)]

    def exchange(self, virtual_host: str, name: str) -> Row:
        """Raises NotFound."""
        name = "" if name == DEFAULT else name
        return _one(self.exchanges(virtual_host), name, f"no exchange '{name}' in vhost '{virtual_host}'")

    # -------------------------------------------------------------- queues

    def queues(self, virtual_host: str) -> list[Row]:
        """Rows are the same objects until a queue changes: callers must not change them."""
        rows = self._still(virtual_host)
        return list(self._remade(virtual_host)) if rows is None else rows

    def each_queue(self, virtual_host: str) -> Iterator[Row]:
        """The same one by one: others may have their turn between two of them."""
        rows = self._still(virtual_host)
        return self._remade(virtual_host) if rows is None else iter(rows)

    def queues_in_place(self, virtual_host: str) -> Steps[list[Row]]:
        """The same by name, in steps: after a change they are sorted once."""
        rows, kept = self.queues(virtual_host), self._rows[virtual_host]
        if len(kept.in_place) != len(rows):
            kept.in_place[:] = yield from placed(rows)
        return kept.in_place

    def _still(self, virtual_host: str) -> list[Row] | None:
        """None where a queue has changed."""
        former = self._rows.get(virtual_host)
        return former.rows if former and former.made_of is self._queues(virtual_host) else None

    def _remade(self, virtual_host: str) -> Iterator[Row]:
        """Kept when all of them are made."""
        kept, rows = self._queues(virtual_host), list[Row]()
        former = self._rows.get(virtual_host)  # held on to: its records are told by where they lie in memory
        known = former.by_record() if former else {}
        for each in kept:
            rows.append(known.get(id(each)) or _queue(each.value))
            yield rows[-1]
        self._rows[virtual_host] = _Rows(kept, rows, [])

    def _queues(self, virtual_host: str) -> list[Kept]:
        return self._house.mirror.grouped("queue", "virtual_host").get(virtual_host, [])

    def queue(self, virtual_host: str, name: str) -> Row:
        """Raises NotFound."""
        return _queue(self.record_of(virtual_host, name))

    def record_of(self, virtual_host: str, name: str) -> Mapping[str, Any]:
        """Of a queue, as the router keeps it. Raises NotFound."""
        kept = self._queue(virtual_host, name)
        if kept is None:
            raise NotFound(f"no queue '{name}' in vhost '{virtual_host}'")
        value: Mapping[str, Any] = kept.value
        return value

    def has_queue(self, virtual_host: str, name: str) -> bool:
        """Whether there is one of that name."""
        return self._queue(virtual_host, name) is not None

    def _queue(self, virtual_host: str, name: str) -> Kept | None:
        return self._house.mirror.tables["queue"].get(json.dumps([virtual_host, name], ensure_ascii=False))

    def shared(self, virtual_host: str, name: str) -> Mapping[str, Any]:
        """The same of a queue that is not exclusive to a connection. Raises NotFound, ResourceLocked."""
        queue = self.record_of(virtual_host, name)
        check_shared(virtual_host, name, queue["exclusive_to"])
        return queue

    # -------------------------------------------------------------- bindings

    def bindings(self, virtual_host: str) -> list[Row]:
        """With those that each queue has with the default exchange, by its name."""
        return list(self.each_binding(virtual_host))

    def each_binding(self, virtual_host: str) -> Iterator[Row]:
        """The same one by one."""
        return chain(self._implied(virtual_host), self._bindings("virtual_host", virtual_host, virtual_host))

    def bindings_from(self, virtual_host: str, exchange: str) -> Iterator[Row]:
        """By their source, one by one."""
        return self._bindings("source", exchange, virtual_host) if exchange else self._implied(virtual_host)

    def bindings_to_exchange(self, virtual_host: str, name: str) -> Iterator[Row]:
        """By their destination, one by one."""
        return self._bindings("destination", name, virtual_host)

    def bindings_to_queue(self, virtual_host: str, name: str) -> Iterator[Row]:
        """The same, with that of the default exchange. Raises NotFound of the queue."""
        number = self.record_of(virtual_host, name)["id"]
        return chain([_implied(virtual_host, name)], self._bindings("destination", number, virtual_host))

    def bindings_between(self, virtual_host: str, source: str, name: str, *, to_exchange: bool) -> list[Row]:
        """None where one of the two is not there."""
        if not to_exchange and not self.has_queue(virtual_host, name):
            return []
        its = self.bindings_to_exchange if to_exchange else self.bindings_to_queue
        return [row for row in its(virtual_host, name) if row["source"] == source]

    def _implied(self, virtual_host: str) -> Iterator[Row]:
        return (_implied(virtual_host, row["name"]) for row in self.each_queue(virtual_host))

    def _bindings(self, field: str, value: int | str, virtual_host: str) -> Iterator[Row]:
        kept = self._house.mirror.grouped("binding", field).get(value, ())
        its = (each.value for each in kept if each.value["virtual_host"] == virtual_host)
        return (row for each in its if (row := self._binding(each)))

    def _binding(self, value: Mapping[str, Any]) -> Row | None:
        """None where the queue is gone already, whose id it has."""
        destination, queues = value["destination"], self._house.mirror.grouped("queue", "id")
        to_queue = not isinstance(destination, str)
        if to_queue and not queues.get(destination):
            return None
        return {
            "source": value["source"],
            "vhost": value["virtual_host"],
            "destination": queues[destination][0].value["name"] if to_queue else destination,
            "destination_type": "queue" if to_queue else "exchange",
            "routing_key": value["routing_key"],
            "arguments": plain(value["arguments"]),
            "properties_key": properties_key(value["routing_key"], value["arguments"]),
        }


class _Rows(NamedTuple):
    """Of queues; those of records that are still the same are those that were made before."""

    made_of: list[Kept]
    rows: list[Row]
    in_place: list[Row]
    """By name, once somebody has wanted them so."""

    def by_record(self) -> dict[int, Row]:
        """Records are the same objects as long as they say the same."""
        return {id(each): row for each, row in zip(self.made_of, self.rows, strict=True)}


def properties_key(routing_key: str, arguments: str) -> str:
    """Which of the bindings between two things it is; `arguments` as they are kept."""
    key = quote_plus(routing_key).replace("~", "%7E")
    if not arguments:
        return key or _NO_ARGUMENTS
    digest = hashlib.sha256(arguments.encode()).digest()[:16]
    return f"{key}~{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"


def _one(rows: Iterable[_R], name: str, nothing: str) -> _R:
    found = next((row for row in rows if row["name"] == name), None)
    if found is None:
        raise NotFound(nothing)
    return found


def _predeclared(virtual_host: str, name: str, type_: str) -> Row:
    return {
        "name": name,
        "vhost": virtual_host,
        "type": type_,
        "durable": True,
        "auto_delete": False,
        "internal": False,
        "arguments": {},
    }


def _exchange(value: Mapping[str, Any]) -> Row:
    return {
        "name": value["name"],
        "vhost": value["virtual_host"],
        "type": value["type"],
        "durable": value["durable"],
        "auto_delete": value["auto_delete"],
        "internal": value["internal"],
        "arguments": plain(value["arguments"]),
    }


def _queue(value: Mapping[str, Any]) -> Row:
    row = {
        "name": value["name"],
        "vhost": value["virtual_host"],
        "durable": value["durable"],
        "auto_delete": value["auto_delete"],
        "exclusive": bool(value["exclusive_to"]),
        "arguments": plain(value["arguments"]),
        "id": value["id"],
        "partition": value["partition"],
    }
    more = {"owner": value["exclusive_to"]} if value["exclusive_to"] else {}
    return row | more | ({"changed_arguments": plain(value["changed"])} if value.get("changed") else {})


def _implied(virtual_host: str, queue: str) -> Row:
    return {
        "source": "",
        "vhost": virtual_host,
        "destination": queue,
        "destination_type": "queue",
        "routing_key": queue,
        "arguments": {},
        "properties_key": properties_key(queue, ""),
    }
