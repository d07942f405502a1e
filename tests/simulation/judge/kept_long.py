"""Who keeps a delivery for longer than its queue's x-consumer-timeout is cancelled, and nobody else by the broker."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.choices import TIMEOUT
from tests.simulation.history import NEVER, Consuming, Delivered
from tests.simulation.judge.facts import Facts, Queue, Violation, told

_LOOKS = 17 / 16  # deliveries that are made one after the other are looked at together
_PATIENCE = 1.0  # seconds besides
_SOONER = 0.3  # seconds that a settlement may be on its way


def kept(facts: Facts) -> Iterator[Violation]:
    """Where nothing fails: nobody keeps a delivery for longer, and keeps its consumer."""
    if facts.history.faults:
        return
    for each in facts.taken:
        queue, consumer = facts.queues.get((each.host, each.queue)), each.consumer
        if queue is None or TIMEOUT not in queue.arguments or consumer is None or each.no_ack or each.transaction:
            continue
        since = each.time if each.back is None else facts.history.time_of(each.back)
        until = since + _seconds(queue) * _LOOKS + _PATIENCE
        sent = facts.history.sent.get(each.id)
        if (
            sent
            and _held_until(facts, each, each.channel.held_until) > until
            and facts.history.time_of(_end(consumer)) > until
        ):
            yield Violation(
                "who keeps a delivery for too long is cancelled",
                f"{told(sent)} was delivered from {queue.name} to {consumer.tag} at {each.time:.3f} s, and kept",
            )


def cancelled(facts: Facts) -> Iterator[Violation]:
    """Where nothing fails: the broker cancels a consumer when its queue goes, or when it keeps a delivery for long."""
    if facts.history.faults or facts.any_held_back:
        return
    for (host, name), consumers in facts.consumers.items():
        queue = facts.queues.get((host, name))
        for consumer in consumers if queue and facts.stays(host, name) else ():
            if consumer.cancelled_by_broker and queue and not _keeps(facts, queue, consumer):
                yield Violation("consumers are cancelled for a reason", f"{consumer.tag} was cancelled on {name}")


def _keeps(facts: Facts, queue: Queue, consumer: Consuming) -> bool:
    if TIMEOUT not in queue.arguments:
        return False
    ending = NEVER if consumer.ending is None else consumer.ending
    held = [_held_until(facts, each, ending) - each.time for each in facts.taken if each.consumer is consumer]
    return max(held, default=0.0) > _seconds(queue) - _SOONER


def _held_until(facts: Facts, delivered: Delivered, end: int) -> float:
    """When the client let go of it. What a link held as it was ended is told as given back when it was delivered."""
    settled = delivered.transaction.answered if delivered.transaction else delivered.settled
    return facts.history.time_of(end if settled in {None, delivered.at} else min(settled or 0, end))


def _end(consumer: Consuming) -> int:
    return min(NEVER if consumer.ending is None else consumer.ending, consumer.channel.held_until)


def _seconds(queue: Queue) -> float:
    return int(str(queue.arguments[TIMEOUT])) / 1000
