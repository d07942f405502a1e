"""What virtual hosts hold, in RabbitMQ's words: made of the records that the tree follows."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import quote_plus

from services.common.errors import NotFound, ResourceLocked
from services.mgmt.rabbitmq.plain import plain
from services.mgmt.tree.house import House
from services.mgmt.tree.mirror import Kept
from services.mgmt.tree.virtual_hosts import PREDECLARED

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
        self._rows: dict[str, dict[int, tuple[Kept, Row]]] = {}  # what one change leaves as it is

    async def known(self, *, counted: bool = False) -> None:
        """Returns when there is something to read; counts of queues are five seconds old at most then."""
        await self._house.ready()
        if counted:
            await self._house.counts.fresh()

    # -------------------------------------------------------------- virtual hosts

    def virtual_hosts(self) -> list[str]:
        """By name."""
        return sorted(self._house.mirror.tables["virtual_host"])

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
        """Rows are the same objects until a queue changes: not to be changed by who gets them."""
        return list(self.each_queue(virtual_host))

    def each_queue(self, virtual_host: str) -> Iterator[Row]:
        """The same one by one: others may have their turn between two of them."""
        former, now = self._rows.get(virtual_host, {}), dict[int, tuple[Kept, Row]]()
        for kept in self._house.mirror.grouped("queue", "virtual_host").get(virtual_host, ()):
            number = kept.value["id"]
            before = former.get(number)
            now[number] = before if before and before[0] is kept else (kept, _queue(kept.value))
            yield now[number][1]
        self._rows[virtual_host] = now

    def queue(self, virtual_host: str, name: str) -> Row:
        """Raises NotFound."""
        return _one(self.queues(virtual_host), name, f"no queue '{name}' in vhost '{virtual_host}'")

    def record_of(self, virtual_host: str, name: str) -> Mapping[str, Any]:
        """Of a queue, as the router keeps it. Raises NotFound."""
        kept = self._house.mirror.grouped("queue", "virtual_host").get(virtual_host, ())
        values: Iterable[Mapping[str, Any]] = (each.value for each in kept)
        return _one(values, name, f"no queue '{name}' in vhost '{virtual_host}'")

    def nobodys(self, virtual_host: str, name: str) -> Mapping[str, Any]:
        """The same of a queue that is no connection's alone. Raises NotFound, ResourceLocked."""
        queue = self.record_of(virtual_host, name)
        if queue["exclusive_to"]:
            raise ResourceLocked(f"cannot obtain exclusive access to locked queue '{name}' in vhost '{virtual_host}'")
        return queue

    # -------------------------------------------------------------- bindings

    def bindings(self, virtual_host: str) -> list[Row]:
        """With those that each queue has with the default exchange, by its name."""
        return list(self.each_binding(virtual_host))

    def each_binding(self, virtual_host: str) -> Iterator[Row]:
        """The same one by one."""
        yield from (_implied(virtual_host, row["name"]) for row in self.each_queue(virtual_host))
        kept = self._house.mirror.grouped("binding", "virtual_host").get(virtual_host, ())
        yield from (row for each in kept if (row := self._binding(each.value)))

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


def leads_to(binding: Row, queue: str) -> bool:
    """Whether it is one of that queue."""
    return (binding["destination_type"], binding["destination"]) == ("queue", queue)


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
    return row | ({"owner": value["exclusive_to"]} if value["exclusive_to"] else {})


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
