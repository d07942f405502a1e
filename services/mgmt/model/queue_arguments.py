"""A queue's attributes as x-arguments, and back: a table, read beside RabbitMQ's documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from services.common.arguments.broker_j import POLICIES
from services.mgmt.model.faults import IllegalConfiguration

_DEAD_LETTERS: Final = "x-dead-letter-exchange"
_DEAD_LETTER_KEY: Final = "x-dead-letter-routing-key"
_POLICIES: Final = {argument: policy for policy, argument in POLICIES.items()}
_LIMITS: Final = ("maximumQueueDepthMessages", "maximumQueueDepthBytes")


@dataclass(frozen=True, slots=True)
class _Number:
    """A number that both sides count, maybe from another one on; `none` says in the model that there is none."""

    attribute: str
    argument: str
    none: int
    more: int = 0  # of the model's

    def attributes(self, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        value = table.get(self.argument)
        if isinstance(value, int) and value >= 0:
            yield self.attribute, value + self.more

    def arguments(self, wanted: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        value = wanted.get(self.attribute, self.none)
        if value != self.none:
            if value < self.more:
                raise IllegalConfiguration(f"attribute '{self.attribute}': at least {self.more} is wanted, not {value}")
            yield self.argument, value - self.more


_NUMBERS: Final = (
    _Number("maximumQueueDepthMessages", "x-max-length", -1),
    _Number("maximumQueueDepthBytes", "x-max-length-bytes", -1),
    _Number("maximumMessageTtl", "x-message-ttl", 0),
    # So many deliveries there are; the argument says after how many a message may come back.
    _Number("maximumDeliveryAttempts", "x-delivery-limit", 0, more=1),
    # So many levels there are; the argument says the highest.
    _Number("priorities", "x-max-priority", -1, more=1),
)


def attributes_of(table: Mapping[str, Any]) -> dict[str, Any]:
    """What arguments say that attributes can say; all of them are in `arguments` besides."""
    found = dict(pair for number in _NUMBERS for pair in number.attributes(table))
    found["type"] = "priority" if found.get("priorities", 1) > 1 else "standard"
    if "priorities" in found and found["type"] == "standard":
        del found["priorities"]
    if "x-overflow" in table or any(limit in found for limit in _LIMITS):
        found["overflowPolicy"] = _POLICIES.get(table.get("x-overflow", "drop-head"), "RING")
    if table.get("x-single-active-consumer") is True:
        found["maximumLiveConsumers"] = 1
    if isinstance(exchange := table.get(_DEAD_LETTERS), str):
        found["alternateBinding"] = _alternate(exchange, table.get(_DEAD_LETTER_KEY))
    return found


def _alternate(exchange: str, key: object) -> dict[str, Any]:
    """A queue, where the default exchange gets it by the queue's name."""
    if not exchange and isinstance(key, str):
        return {"destination": key}
    return {"destination": exchange} | ({"attributes": {"routingKey": key}} if isinstance(key, str) else {})


def arguments_of(wanted: Mapping[str, Any], is_exchange: Callable[[str], bool]) -> dict[str, Any]:
    """With those that `arguments` names, which win. Raises IllegalConfiguration for what no queue is like here."""
    table = dict(pair for number in _NUMBERS for pair in number.arguments(wanted))
    table |= dict(_dead_letters(wanted.get("alternateBinding"), is_exchange))
    live = wanted.get("maximumLiveConsumers", 0)
    if live not in {0, 1}:
        raise IllegalConfiguration(f"attribute 'maximumLiveConsumers': 0 or 1 is wanted, not {live}")
    if live:
        table["x-single-active-consumer"] = True
    return table | dict(_overflow(wanted)) | dict(wanted.get("arguments", {}))


def _overflow(wanted: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    policy, limited = wanted.get("overflowPolicy", "NONE"), any(wanted.get(limit, -1) >= 0 for limit in _LIMITS)
    if limited or policy != "NONE":
        yield "x-overflow", POLICIES[policy]


def _dead_letters(alternate: Mapping[str, Any] | None, is_exchange: Callable[[str], bool]) -> Iterator[tuple[str, Any]]:
    if not alternate:
        return
    destination, key = alternate.get("destination"), (alternate.get("attributes") or {}).get("routingKey")
    if not isinstance(destination, str) or not destination:
        raise IllegalConfiguration("attribute 'alternateBinding': a map with a destination is wanted")
    if is_exchange(destination):
        yield _DEAD_LETTERS, destination
        if key is not None:
            yield _DEAD_LETTER_KEY, key
    else:
        yield _DEAD_LETTERS, ""
        yield _DEAD_LETTER_KEY, destination
