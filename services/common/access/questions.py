"""The questions that are asked before an operation of messaging, with all properties that rules may name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from services.common.access.action import Action, Kind, Property
from services.common.access.asked import Asked, Other
from services.common.arguments.dead_letters import Letters

Properties = tuple[tuple[Property, str | bool], ...]


@cache
def life(*, durable: bool, temporary: bool) -> Properties:
    """The properties of how long something exists."""
    return (
        (Property.DURABLE, durable),
        (Property.AUTO_DELETE, temporary),
        (Property.TEMPORARY, temporary),
    )


@cache
def queue(*, durable: bool, exclusive: bool, auto_delete: bool) -> Properties:
    """The properties of a queue, the same from everywhere: a rule means the same over every protocol and HTTP."""
    return (*life(durable=durable, temporary=exclusive or auto_delete), (Property.EXCLUSIVE, exclusive))


SERVER_NAMED = "amq.gen-AAAAAAAAAAAAAAAAAAAAAA"
"""Stands for a name that the router will make: permissions can only know how such a name begins."""


def open_virtual_host(name: str) -> Asked:
    """To open a connection to a virtual host."""
    return Asked(Action.ACCESS, Kind.VIRTUALHOST, name, name)


def set_policies(virtual_host: str) -> Asked:
    """To set and clear policies of its queues."""
    return Asked(Action.CONFIGURE, Kind.VIRTUALHOST, virtual_host, virtual_host)


def look(kind: Kind, virtual_host: str, name: str) -> Asked:
    """To learn whether something exists: a passive declare, or the address of a link."""
    return Asked(Action.LOOK, kind, name, virtual_host)


def create_exchange(virtual_host: str, name: str, alternate: str | None, properties: Properties) -> Asked:
    """To declare an exchange, with its alternate exchange."""
    return _create(Kind.EXCHANGE, virtual_host, name, alternate, properties)


def create_queue(virtual_host: str, name: str, letters: Letters, properties: Properties) -> Asked:
    """To declare a queue, with where its dead letters go. Without a name, the router makes one."""
    asked = _create(Kind.QUEUE, virtual_host, name or SERVER_NAMED, letters.exchange, properties)
    further = [Other(Kind.EXCHANGE, each) for each in letters.others]
    if letters.made is not None:
        further.append(Other(Kind.QUEUE, letters.made if name else SERVER_NAMED))
    return asked._replace(further=tuple(further)) if further else asked


def _create(kind: Kind, virtual_host: str, name: str, alternate: str | None, properties: Properties) -> Asked:
    if alternate is None:
        return Asked(Action.CREATE, kind, name, virtual_host, None, properties)
    other = Other(Kind.EXCHANGE, alternate)
    return Asked(Action.CREATE, kind, name, virtual_host, other, (*properties, (Property.ALTERNATE, alternate)))


def bind(action: Action, virtual_host: str, source: str, destination: Other, properties: Properties) -> Asked:
    """To bind or unbind: the source exchange, and the destination, a queue or an exchange. `properties` has the key."""
    its = (*properties, (Property.QUEUE_NAME, destination.name))
    return Asked(action, Kind.EXCHANGE, source, virtual_host, destination, its)


def publish(virtual_host: str, exchange: str, routing_key: str) -> Asked:
    """To publish one message; one with more keys needs a question for each."""
    return Asked(Action.PUBLISH, Kind.EXCHANGE, exchange, virtual_host, None, ((Property.ROUTING_KEY, routing_key),))


def of_queue(action: Action, virtual_host: str, name: str, properties: Properties) -> Asked:
    """To consume from a queue, purge it or delete it."""
    return Asked(action, Kind.QUEUE, name, virtual_host, None, properties)


def create_user(name: str, tags: Iterable[object]) -> tuple[Asked, ...]:
    """To create a user. Tags say what a user may do, so to create one with tags also needs to update its tags."""
    made = Asked(Action.CREATE, Kind.USER, name)
    return (made, update(Kind.USER, "", name, ["tags"])) if tags else (made,)


def update(kind: Kind, virtual_host: str, name: str, attributes: Iterable[str]) -> Asked:
    """To change these attributes of an object."""
    return Asked(Action.UPDATE, kind, name, virtual_host, None, ((Property.ATTRIBUTES, ",".join(sorted(attributes))),))


def delete_exchange(virtual_host: str, name: str) -> Asked:
    """To delete an exchange with its bindings."""
    return Asked(Action.DELETE, Kind.EXCHANGE, name, virtual_host)
