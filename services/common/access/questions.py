"""What is asked before an operation of messaging is carried out, with all that rules may look at."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from services.common.access.action import Action, Kind, Property
from services.common.access.asked import Asked, Other

Properties = tuple[tuple[Property, str | bool], ...]


@cache
def life(*, durable: bool, temporary: bool) -> Properties:
    """How long something is there."""
    return (
        (Property.DURABLE, durable),
        (Property.AUTO_DELETE, temporary),
        (Property.TEMPORARY, temporary),
    )


@cache
def queue(*, durable: bool, exclusive: bool, auto_delete: bool) -> Properties:
    """Of a queue, whoever asks about it: a rule means the same over every protocol and HTTP."""
    return (*life(durable=durable, temporary=exclusive or auto_delete), (Property.EXCLUSIVE, exclusive))


SERVER_NAMED = "amq.gen-AAAAAAAAAAAAAAAAAAAAAA"
"""In the place of a name that the router will make: permissions cannot know more of it than how it begins."""


def open_virtual_host(name: str) -> Asked:
    """connection.open."""
    return Asked(Action.ACCESS, Kind.VIRTUALHOST, name, name)


def look(kind: Kind, virtual_host: str, name: str) -> Asked:
    """Whether it is there: a passive declare, or the address of a link."""
    return Asked(Action.LOOK, kind, name, virtual_host)


def create_exchange(virtual_host: str, name: str, alternate: str | None, properties: Properties) -> Asked:
    """With the exchange that gets what it routes nowhere."""
    return _create(Kind.EXCHANGE, virtual_host, name, alternate, properties)


def create_queue(virtual_host: str, name: str, dead_letters: str | None, properties: Properties) -> Asked:
    """With the exchange that gets its dead letters. Without a name, the router makes one."""
    return _create(Kind.QUEUE, virtual_host, name or SERVER_NAMED, dead_letters, properties)


def _create(kind: Kind, virtual_host: str, name: str, alternate: str | None, properties: Properties) -> Asked:
    if alternate is None:
        return Asked(Action.CREATE, kind, name, virtual_host, None, properties)
    other = Other(Kind.EXCHANGE, alternate)
    return Asked(Action.CREATE, kind, name, virtual_host, other, (*properties, (Property.ALTERNATE, alternate)))


def bind(action: Action, virtual_host: str, source: str, destination: Other, properties: Properties) -> Asked:
    """Or unbind: of an exchange, and a queue or an exchange that gets its messages; `properties` say the key."""
    its = (*properties, (Property.QUEUE_NAME, destination.name))
    return Asked(action, Kind.EXCHANGE, source, virtual_host, destination, its)


def publish(virtual_host: str, exchange: str, routing_key: str) -> Asked:
    """One message; it may go by more keys, each of which is asked about."""
    return Asked(Action.PUBLISH, Kind.EXCHANGE, exchange, virtual_host, None, ((Property.ROUTING_KEY, routing_key),))


def of_queue(action: Action, virtual_host: str, name: str, properties: Properties) -> Asked:
    """Consume from it, purge it, delete it."""
    return Asked(action, Kind.QUEUE, name, virtual_host, None, properties)


def create_user(name: str, tags: Iterable[object]) -> tuple[Asked, ...]:
    """Who gives one tags, changes its tags too: they are what it may do, which to make a user is not about."""
    made = Asked(Action.CREATE, Kind.USER, name)
    return (made, update(Kind.USER, "", name, ["tags"])) if tags else (made,)


def update(kind: Kind, virtual_host: str, name: str, attributes: Iterable[str]) -> Asked:
    """Change these attributes of it."""
    return Asked(Action.UPDATE, kind, name, virtual_host, None, ((Property.ATTRIBUTES, ",".join(sorted(attributes))),))


def delete_exchange(virtual_host: str, name: str) -> Asked:
    """With its bindings."""
    return Asked(Action.DELETE, Kind.EXCHANGE, name, virtual_host)
