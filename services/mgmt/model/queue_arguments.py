"""A queue's attributes as arguments, and back (`services/common/arguments`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from services.common.arguments import queue
from services.common.arguments.argument import Argument
from services.common.arguments.broker_j import ALIASES, POLICIES
from services.common.arguments.reading import Wrong, checked, said
from services.mgmt.model.faults import IllegalConfiguration

_GROUPS: Final[tuple[Argument[Any], ...]] = (queue.GROUP_KEY, queue.DEFAULT_GROUP, queue.MOST_GROUPS)
_PLAIN: Final[tuple[Argument[Any], ...]] = (
    queue.NONDESTRUCTIVE,
    queue.DEFAULT_FILTERS,
    queue.LEAST_TTL,
    queue.HOLDS,
    queue.NO_LOCAL,
    queue.EXPIRY,
)
_MODEL: Final = frozenset(
    {alias.name for alias in ALIASES} | {queue.GROUP_TYPE.name, *(each.name for each in (*_GROUPS, *_PLAIN))}
)
_POLICIES: Final = {argument: policy for policy, argument in POLICIES.items()}
# Broker-J counts deliveries and levels; the arguments say after how many a message may come back, and the highest.
_NUMBERS: Final = (
    ("maximumQueueDepthMessages", queue.MAX_LENGTH, 0),
    ("maximumQueueDepthBytes", queue.MAX_LENGTH_BYTES, 0),
    ("maximumMessageTtl", queue.MESSAGE_TTL, 0),
    ("maximumDeliveryAttempts", queue.DELIVERY_LIMIT, 1),
)
_LIMITS: Final = ("maximumQueueDepthMessages", "maximumQueueDepthBytes")
_ORDERS: Final = (("sorted", "sortKey", queue.SORT_KEY), ("lvq", "lvqKey", queue.LAST_VALUE_KEY))
_CHANGED: Final[Mapping[str, tuple[str, ...]]] = {
    **{attribute: (argument.name,) for attribute, argument, _ in _NUMBERS},
    **{each.name: (each.name,) for each in (queue.DEFAULT_FILTERS, queue.LEAST_TTL, queue.NO_LOCAL, queue.EXPIRY)},
    "overflowPolicy": (queue.OVERFLOW.name,),
    "alternateBinding": (queue.DEAD_LETTER_EXCHANGE.name, queue.DEAD_LETTER_KEY.name),
}
"""Attributes that are changed while there are messages, and arguments that say them."""
Table = dict[str, Any]
NEEDS: Final = {kind: attribute for kind, attribute, _ in _ORDERS}
"""What a queue of a type cannot do without."""


def attributes_of(table: Mapping[str, Any]) -> dict[str, Any]:
    """What arguments say that attributes can say; all of them are in `arguments` besides."""
    found = said(table)
    attributes: dict[str, Any] = {
        attribute: value + more for attribute, argument, more in _NUMBERS if (value := argument.of(found)) is not None
    }
    attributes |= _order(found)
    if queue.OVERFLOW.name in found or any(limit in attributes for limit in _LIMITS):
        attributes["overflowPolicy"] = _POLICIES.get(queue.OVERFLOW.of(found), "RING")
    if (groups := queue.GROUP_TYPE.of(found)) != queue.GROUP_TYPE.default:
        attributes |= {"messageGroupType": groups} | {
            argument.name: argument.of(found) for argument in _GROUPS if argument.name in found
        }
    attributes |= {argument.name: found[argument.name] for argument in _PLAIN if argument.name in found}
    if live := 1 if queue.SINGLE_ACTIVE.of(found) else queue.LIVE_CONSUMERS.of(found):
        attributes["maximumLiveConsumers"] = live
    if (exchange := queue.DEAD_LETTER_EXCHANGE.of(found)) is not None:
        attributes["alternateBinding"] = _alternate(exchange, queue.DEAD_LETTER_KEY.of(found))
        attributes[queue.EXPIRY.name] = queue.EXPIRY.of(found)
    return attributes


def _order(found: Mapping[str, Any]) -> dict[str, Any]:
    """Its type, and what that is by."""
    if highest := queue.MAX_PRIORITY.of(found):
        return {"type": "priority", "priorities": highest + 1}
    for kind, attribute, argument in _ORDERS:
        if key := argument.of(found):
            return {"type": kind, attribute: key}
    return {"type": "standard"}


def _alternate(exchange: str, key: str | None) -> dict[str, Any]:
    """A queue, where the default exchange gets it by the queue's name."""
    if not exchange and key is not None:
        return {"destination": key}
    return {"destination": exchange} | ({} if key is None else {"attributes": {"routingKey": key}})


def arguments_of(wanted: Mapping[str, Any], is_exchange: Callable[[str], bool]) -> dict[str, Any]:
    """With those that `arguments` names, which win. Raises IllegalConfiguration for what no queue is like here."""
    kind = wanted.get("type", "standard")
    if (key := NEEDS.get(kind)) and not wanted.get(key):
        raise IllegalConfiguration(f"attribute '{key}': a queue of type {kind} needs it")
    try:
        table = checked({name: value for name, value in wanted.items() if name in _MODEL and value is not None})
    except Wrong as error:
        raise IllegalConfiguration(f"attribute '{error.name}': {error.why}") from None
    return table | dict(_dead_letters(wanted.get("alternateBinding"), is_exchange)) | dict(wanted.get("arguments", {}))


def new_arguments(wanted: Mapping[str, Any], is_exchange: Callable[[str], bool]) -> dict[str, Any]:
    """Those of a queue that is to be made. Raises IllegalConfiguration."""
    return _expiry_unsaid(wanted, {}) | arguments_of(wanted, is_exchange)


def changed_arguments(wanted: Mapping[str, Any], found: Mapping[str, Any], is_exchange: Callable[[str], bool]) -> Table:
    """What changes of the arguments: attributes that are `wanted` of a queue with those that it is `found` with.

    Null takes away. Raises IllegalConfiguration.
    """
    table = arguments_of(wanted, is_exchange)
    if "overflowPolicy" not in wanted and found.get("overflowPolicy", "NONE") != "NONE":
        table.pop(queue.OVERFLOW.name, None)  # a limit alone implies one where there is none
    named = {argument: None for attribute in wanted for argument in _CHANGED[attribute]}
    return named | _expiry_unsaid(wanted, found) | table


def _expiry_unsaid(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> Table:
    """What becomes of what expires where nothing is said of it: it is deleted, once there is an alternate.

    Null is that default as well. What was said once stays, whatever becomes of the alternate.
    """
    name, alternate = queue.EXPIRY.name, {**found, **wanted}.get("alternateBinding")
    if wanted.get(name) is not None:
        return {}
    if name in found and name not in wanted:
        # RabbitMQ's argument implies one, which would go with it
        return {name: found[name]} if "alternateBinding" in wanted and not alternate else {}
    return {name: queue.DELETE} if alternate else {}


def _dead_letters(alternate: Mapping[str, Any] | None, is_exchange: Callable[[str], bool]) -> Iterator[tuple[str, Any]]:
    if not alternate:
        return
    attributes = attributes_in(alternate, {"routingKey"})
    destination, key = alternate.get("destination"), attributes.get("routingKey")
    if not isinstance(destination, str) or not destination:
        raise IllegalConfiguration("attribute 'alternateBinding': a map with a destination is wanted")
    exchange, key = (destination, key) if is_exchange(destination) else ("", destination)
    yield queue.DEAD_LETTER_EXCHANGE.name, exchange
    if key is not None:
        yield queue.DEAD_LETTER_KEY.name, key


def attributes_in(alternate: Mapping[str, Any], known: AbstractSet[str] = frozenset()) -> Mapping[str, Any]:
    """Those of an alternate binding, which are `known`. Raises IllegalConfiguration for what would have no effect."""
    attributes = alternate.get("attributes") or {}
    if not isinstance(attributes, Mapping):
        raise IllegalConfiguration("attribute 'alternateBinding': attributes are a map")
    if unknown := {*(alternate.keys() - {"destination", "attributes"}), *(attributes.keys() - known)}:
        raise IllegalConfiguration(f"attribute 'alternateBinding': there is no '{min(unknown)}' in one here")
    return attributes
