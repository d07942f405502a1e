"""The RabbitMQ permissions that each operation needs: a table, to be read beside RabbitMQ's documentation.

https://www.rabbitmq.com/docs/access-control#authorisation
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from services.common.access.action import Action, Kind
from services.common.access.asked import DEFAULT_EXCHANGE, Asked

CONFIGURE, WRITE, READ = "configure", "write", "read"
ANY = "configure, write or read"
"""One of them is enough to learn whether something exists."""


class Need(NamedTuple):
    """A permission on a name; `topic`: also on the routing key, where the user has a topic permission."""

    permission: str
    kind: Kind
    name: str
    topic: bool = False


def _itself(permission: str, *, topic: bool = False) -> Callable[[Asked], Iterator[Need]]:
    def needs(asked: Asked) -> Iterator[Need]:
        yield Need(permission, asked.kind, asked.name, topic)

    return needs


def _create(asked: Asked) -> Iterator[Need]:
    """With a dead-letter or an alternate exchange, a declare also needs to read here and to write there."""
    yield Need(CONFIGURE, asked.kind, asked.name)
    if asked.other:
        yield Need(READ, asked.kind, asked.name)
        yield Need(WRITE, *asked.other)
    for each in asked.further:
        yield Need(CONFIGURE if each.kind is Kind.QUEUE else WRITE, *each)


def _bind(asked: Asked) -> Iterator[Need]:
    if asked.other:
        yield Need(WRITE, *asked.other)
    yield Need(READ, asked.kind, asked.name, topic=True)


_NEEDS: Mapping[tuple[Action, Kind], Callable[[Asked], Iterator[Need]]] = {
    (Action.CREATE, Kind.EXCHANGE): _create,
    (Action.DELETE, Kind.EXCHANGE): _itself(CONFIGURE),
    (Action.BIND, Kind.EXCHANGE): _bind,
    (Action.UNBIND, Kind.EXCHANGE): _bind,
    (Action.PUBLISH, Kind.EXCHANGE): _itself(WRITE, topic=True),
    (Action.CREATE, Kind.QUEUE): _create,
    (Action.DELETE, Kind.QUEUE): _itself(CONFIGURE),
    (Action.PURGE, Kind.QUEUE): _itself(READ),
    (Action.CONSUME, Kind.QUEUE): _itself(READ),
}


def needs_of(asked: Asked) -> list[Need] | None:
    """All needs, in RabbitMQ's order; None: permissions do not cover the operation."""
    needs = _NEEDS.get((asked.action, asked.kind))
    return [named(need) for need in needs(asked)] if needs else None


def named(need: Need) -> Need:
    """With the exchange's name as permissions write it."""
    return need._replace(name=DEFAULT_EXCHANGE) if need.kind is Kind.EXCHANGE and not need.name else need
