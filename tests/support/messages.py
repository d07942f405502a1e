"""Messages as publishers, gateways and queues have them, for tests that care about little of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.common.clients.outbound import Attempt, Delivery, Messages
from services.common.message.facts import Attributes, Facts, facts_of
from services.gateway.vocabulary import Kind, Publish

PROPERTIES = b"\x00\x00"


def facts(exchange: str = "", routing_key: str = "key", **said: Any) -> Facts:
    """Of a message of the 0-9 family in virtual host "/"; `said` by its properties."""
    return Facts("/", exchange, routing_key, "amqp-0-9", **said)


def kind(
    exchange: str = "",
    routing_key: str = "key",
    *,
    mandatory: bool = False,
    immediate: bool = False,
    more_keys: tuple[str, ...] = (),
    attributes: Attributes = Attributes(),  # noqa: B008 - it never changes
) -> Kind:
    """What a publish asks for."""
    its = facts_of("/", exchange, routing_key, "amqp-0-9", attributes)
    return Kind(its, attributes, mandatory, immediate, more_keys)


def published(bodies: Sequence[bytes], *kinds: Kind, properties: Sequence[bytes] = (), first: int = 0) -> Publish:
    """On session 1; one kind and one value of properties stand for all."""
    count = len(bodies)
    its = list(properties) or [PROPERTIES]
    return Publish(1, list(kinds) * (count // len(kinds)), its * (count // len(its)), bodies, first)


def messages(bodies: Sequence[bytes], queue_ids: tuple[int, ...] = (1,), first: int = 1, **said: Any) -> Messages:
    """With uids from `first` on, all to the same queues."""
    count = len(bodies)
    uids = range(first, first + count)
    columns = [facts(**said)] * count, [PROPERTIES] * count, bodies, [queue_ids] * count
    return Messages(uids, *columns, range(count))


def attempt(of: Messages, time_ms: int = 0, *, resent: bool = False) -> Attempt:
    """An attempt of all of some messages, for which no ticket waits."""
    return Attempt(of, of.by_queue(), time_ms, Delivery(None, of.numbers), of.size, resent)
