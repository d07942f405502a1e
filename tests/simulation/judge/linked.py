"""What AMQP 1.0 promises of links besides: the answer to a drain is true, and what is released was no attempt."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.choices import GIVES_ALL, HOLDS, TIMEOUT
from tests.simulation.history import Drained, Sent
from tests.simulation.judge.facts import Facts, Queue, Violation, told

_SOON = 0.5  # seconds
_HARMLESS = {"move", "add_queue_process", "disk_slow"}  # faults with which nothing is on its way to nobody


def left_behind(facts: Facts) -> Iterator[Violation]:
    """A drain ends when there is nothing more for its link (2.6.7): what waits then has come since."""
    if not {fault.what for fault in facts.history.faults} <= _HARMLESS:
        return
    for drain in facts.history.drains:
        consumer = drain.consumer
        queue = facts.queues.get((consumer.host, consumer.queue))
        if queue is None or not drain.unused or consumer.selector or facts.browses(consumer) or facts.spares(consumer):
            continue
        for sent in _waiting(facts, queue, drain) if queue.arguments.keys() <= GIVES_ALL - {HOLDS} else ():
            yield Violation(
                "a drain gives what there is",
                f"{told(sent)} waited in {queue.name} when {consumer.tag} was told that there was nothing more, with"
                f" credit for {drain.unused}",
            )


def _waiting(facts: Facts, queue: Queue, drain: Drained) -> Iterator[Sent]:
    """What was in the queue, with nobody, from before it was asked until after it was answered."""
    time_of, at = facts.history.time_of, (queue.host, queue.name)
    if drain.answered is None or facts.asked("purge", *at) or facts.asked("delete_queue", *at):
        return
    for sent in facts.history.sent.values():
        first = next(iter(facts.delivered(queue.host, queue.name, sent.id)), None)
        if first is None or first.redelivered or sent.confirmed is None or sent.ttl is not None:
            continue
        waited = time_of(sent.confirmed) + _SOON < time_of(drain.asked) and first.time > time_of(drain.answered) + _SOON
        if waited and queue.name in facts.routes(sent).must:
            yield sent


def given_up(facts: Facts) -> Iterator[Violation]:
    """Where nothing fails: what was only released, and seen by nobody else, has no attempts to be given up for."""
    if facts.history.faults:
        return
    for each in facts.history.deliveries:
        sent = facts.history.sent.get(each.id)
        if sent is None or not each.deaths or each.deaths[0][1] != "delivery_limit":
            continue
        source = facts.queues.get((each.host, each.deaths[0][0]))
        tries = facts.delivered(each.host, each.deaths[0][0], each.id)
        attempts = [one for one in tries if one.attempt and not one.deaths]
        if source and not attempts and not facts.gone_unseen(sent, source, each.at):
            yield Violation(
                "what is released is no attempt",
                f"{told(sent)} was dead-lettered from {source.name}, and delivered {len(tries)} times, all released",
            )


def miscounted(facts: Facts) -> Iterator[Violation]:
    """Where nothing fails: delivery-count is that of the attempts before, which were not released (3.2.1)."""
    if facts.history.faults:
        return
    for (host, name, message), deliveries in facts.deliveries.items():
        queue, sent = facts.queues[host, name], facts.history.sent.get(message)
        for index, each in enumerate(deliveries):
            if sent is None or each.before is None or each.deaths or TIMEOUT in queue.arguments:
                continue
            attempts = sum(one.attempt for one in deliveries[:index])
            if each.before != attempts and not facts.gone_unseen(sent, queue, each.at):
                yield Violation(
                    "attempts are counted",
                    f"{told(sent)} was delivered from {name} with delivery-count {each.before}, after {attempts}",
                )
