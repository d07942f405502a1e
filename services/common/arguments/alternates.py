"""Broker-J's `alternateBinding` and `x-qpid-dlq-enabled`: where a queue's dead letters go, but for what expires.

What they say depends on the queue's name and on what is there, so that the router reads them, and keeps what they say
by RabbitMQ's names. A destination is an exchange, or a queue, to which the default exchange leads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from services.common.arguments import checks, queue
from services.common.arguments.reading import Saying, Wrong

ALTERNATE: Final = "alternateBinding"
DLQ_ENABLED: Final = "x-qpid-dlq-enabled"
DLQ_SUFFIX: Final = "_DLQ"
KEPT_BY: Final = (queue.DEAD_LETTER_EXCHANGE.name, queue.DEAD_LETTER_KEY.name, queue.EXPIRY.name)
"""The arguments that say what these two do."""
_IMPLIES: Final = {queue.EXPIRY.name: queue.DELETE}
_WANTED: Final = "must be a map with a destination, or that as JSON"
_KEY: Final = "routingKey"


class Alternate(NamedTuple):
    """By which argument, where to, and there by which key, where it is said; `made`: the queue is to be there."""

    name: str
    destination: str
    key: str | None = None
    made: bool = False

    def saying(self, is_exchange: Callable[[str], bool]) -> Saying:
        """As arguments of which it does not matter what is there."""
        exchange, key = (self.destination, self.key) if is_exchange(self.destination) else ("", self.destination)
        says = {queue.DEAD_LETTER_EXCHANGE.name: exchange}
        return Saying(self.name, says if key is None else says | {queue.DEAD_LETTER_KEY.name: key}, _IMPLIES)


def alternates(table: Mapping[str, Any], queue_name: str) -> list[Alternate]:
    """What a client's arguments say in these two. Raises Wrong."""
    found = [_binding(table[ALTERNATE])] if ALTERNATE in table else []
    if DLQ_ENABLED in table:
        found.append(_dead_letter_queue(table[DLQ_ENABLED], queue_name))
    its = [each for each in found if each]
    for each in its:
        if each.destination == queue_name:
            raise Wrong(each.name, "must name another destination than the queue itself")
    return its


def is_said_in(table: Mapping[str, Any]) -> bool:
    """Whether a client's arguments have one of these two."""
    return ALTERNATE in table or DLQ_ENABLED in table


def without(table: Mapping[str, Any]) -> dict[str, Any]:
    """All else that the arguments say."""
    return {name: value for name, value in table.items() if name not in (ALTERNATE, DLQ_ENABLED)}


def _dead_letter_queue(value: object, queue_name: str) -> Alternate | None:
    if wrong := checks.truth(value):
        raise Wrong(DLQ_ENABLED, wrong)
    if not checks.is_true(value):
        return None
    name = queue_name + DLQ_SUFFIX
    if wrong := checks.name(name):
        raise Wrong(DLQ_ENABLED, f"makes a queue whose name {wrong}")
    return Alternate(DLQ_ENABLED, name, made=True)


def _binding(value: object) -> Alternate | None:
    """Clients whose tables hold no maps write it as JSON."""
    if isinstance(value, str) and value:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise Wrong(ALTERNATE, f"{_WANTED}, not {value!r}") from None
    if value in ("", {}):
        return None
    if not isinstance(value, Mapping):
        raise Wrong(ALTERNATE, f"{_WANTED}, not {type(value).__name__}")
    return _of_map(value)


def _of_map(value: Mapping[str, Any]) -> Alternate:
    destination, attributes = value.get("destination"), value.get("attributes") or {}
    if not isinstance(destination, str) or not destination:
        raise Wrong(ALTERNATE, _WANTED)
    if not isinstance(attributes, Mapping):
        raise Wrong(ALTERNATE, f"has attributes that are no map, but {type(attributes).__name__}")
    if unknown := {*(value.keys() - {"destination", "attributes"}), *(attributes.keys() - {_KEY})}:
        raise Wrong(ALTERNATE, f"has no '{min(unknown)}'")
    key = attributes.get(_KEY)
    for what, its in (("destination", destination), (_KEY, key)):
        if its is not None and (wrong := checks.name(its)):
            raise Wrong(ALTERNATE, f"has a {what} that {wrong}")
    return Alternate(ALTERNATE, destination, key)
