"""Where messages can be sent to, by name: exchanges and queues of a virtual host, as they are on record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from services.mgmt.tree.mirror import Kept, Mirror

PREDECLARED: Final[Mapping[str, str]] = {
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.headers": "headers",
    "amq.match": "headers",
    "amq.topic": "topic",
}
"""Exchanges that every virtual host has, which are no records: by name, their types."""


class Place(NamedTuple):
    """An exchange, and the key of what is sent to it."""

    exchange: str
    key: str


def is_exchange(mirror: Mirror, virtual_host: str, name: str) -> bool:
    """Whether there is one of that name."""
    return name in PREDECLARED or _names(mirror.grouped("exchange", "virtual_host"), virtual_host, name)


def is_queue(mirror: Mirror, virtual_host: str, name: str) -> bool:
    """The same of queues."""
    return _names(mirror.grouped("queue", "virtual_host"), virtual_host, name)


def place_of(mirror: Mirror, virtual_host: str, address: str) -> Place:
    """As Broker-J reads an address: an exchange, which gets the address as key; a queue; else `exchange/key`.

    What leads nowhere is a key of the default exchange, to which no queue is bound.
    """
    exchange, slash, key = address.partition("/")
    if is_exchange(mirror, virtual_host, address):
        return Place(address, address)
    if slash and not is_queue(mirror, virtual_host, address) and is_exchange(mirror, virtual_host, exchange):
        return Place(exchange, key)
    return Place("", address)


def _names(by_host: Mapping[Any, list[Kept]], virtual_host: str, name: str) -> bool:
    return any(each.value["name"] == name for each in by_host.get(virtual_host, ()))
