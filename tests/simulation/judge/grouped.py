"""Messages of one group are one consumer's: while it holds some of them, or as long as it is there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import TypeAlias

from tests.simulation.choices import is_ring
from tests.simulation.history import NEVER, Consuming, Delivered
from tests.simulation.judge.facts import Facts, Queue, Violation, told

_KEY = "qpid.group_header_key"
_SHARED = "qpid.shared_msg_group"

_Until: TypeAlias = Callable[[Delivered], int]


def held_by_one(facts: Facts) -> Iterator[Violation]:
    """Shared groups: none of one group comes to another consumer as long as one holds some of it.

    A ring drops what somebody holds: then it is nobody's, though a client has not settled it.
    """
    for queue, deliveries in _by_group(facts, shared=True):
        if is_ring(queue.arguments):
            continue
        kept = [each for each in deliveries if not each.no_ack]
        yield from _meetings(facts, queue, kept, _kept_until)


def owned_by_one(facts: Facts) -> Iterator[Violation]:
    """Standard groups: whose a group was once it stays; judged where nothing fails, since owners forget it."""
    if not facts.history.faults:
        for queue, deliveries in _by_group(facts, shared=False):
            yield from _meetings(facts, queue, deliveries, _there_until)


def _by_group(facts: Facts, *, shared: bool) -> Iterator[tuple[Queue, list[Delivered]]]:
    """What consumers got of each group; in shared ones those without a group are one, else they are free."""
    found: dict[tuple[str, str, object], list[Delivered]] = defaultdict(list)
    for each in facts.taken:
        sent = facts.history.sent.get(each.id)
        if sent and each.consumer and not each.draining and (shared or "colour" in sent.headers):
            found[each.host, each.queue, sent.headers.get("colour")].append(each)
    for (host, name, _), deliveries in found.items():
        queue = facts.queues[host, name]
        if _KEY in queue.arguments and (_SHARED in queue.arguments) is shared:
            yield queue, deliveries


def _meetings(facts: Facts, queue: Queue, deliveries: list[Delivered], until: _Until) -> Iterator[Violation]:
    for one, other in combinations(deliveries, 2):
        if one.consumer is not other.consumer and one.at < other.at < until(one) and _is_sure(facts, one, other):
            yield Violation(
                "a group is one consumer's",
                f"{told(facts.history.sent[other.id])} was delivered from {queue.name} to {_named(other)}, while"
                f" {_named(one)} had {one.id} of its group",
            )


def _is_sure(facts: Facts, one: Delivered, other: Delivered) -> bool:
    """Whether the broker certainly knew of the delivery `one`, and had not ended the consumer of `other` by then."""
    if facts.owners_may_die and not facts.is_on_disk(one):
        return False  # gone with its owner: the next one knows of no such message
    gateways = {each.channel.connection.gateway for each in (one, other)}
    if any(facts.troubled(gateway) or facts.may_be_deaf(gateway) for gateway in gateways):
        return False
    return other.at < _there_until(other) and not facts.may_be_taken_from(one, other.time)


def _kept_until(delivered: Delivered) -> int:
    return min(NEVER if delivered.settled is None else delivered.settled, _there_until(delivered))


def _there_until(delivered: Delivered) -> int:
    consumer: Consuming | None = delivered.consumer
    ending = consumer.ending if consumer else None
    return min(NEVER if ending is None else ending, delivered.channel.held_until)


def _named(delivered: Delivered) -> str:
    return f"{delivered.channel.connection.client} ({delivered.consumer.tag if delivered.consumer else ''})"
