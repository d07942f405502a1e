"""A queue that takes each key once has one message of it, once a publisher had heard that the first one is there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.simulation.choices import KEY, ONCE
from tests.simulation.history import NEVER, Sent
from tests.simulation.judge.facts import Facts, Queue, Violation, told


def key_of(sent: Sent, queue: Queue) -> str | None:
    """By which a queue knows a message again, as far as histories say one."""
    return str(sent.headers[KEY]) if ONCE in queue.arguments and KEY in sent.headers else None


def taken_twice(facts: Facts) -> Iterator[Violation]:
    """Of two messages with a key that a queue gave, the first was not known to be safe when the second was sent."""
    for queue in facts.queues.values() if not facts.faults("jump_clock") else ():
        if ONCE not in queue.arguments or not facts.stays(queue.host, queue.name):
            continue
        found: dict[str, list[Sent]] = {}
        for sent in facts.history.sent.values():
            if sent.host == queue.host and (key := key_of(sent, queue)) and _was_taken(facts, queue, sent):
                found.setdefault(key, []).append(sent)
        for key, several in found.items():
            for one, other in pairwise(sorted(several, key=lambda each: each.at)):
                if (
                    stands_for(one, other, queue)
                    and _is_safe(facts, queue, one)
                    and (one.confirmed or NEVER) < other.at
                ):
                    yield Violation(
                        "what has a key is taken once",
                        f"{told(other)} was in {queue.name}, as {one.id}, with key {key}",
                    )


def _was_taken(facts: Facts, queue: Queue, sent: Sent) -> bool:
    """By its publish: dead letters are taken whatever their key."""
    return any(not each.deaths for each in facts.delivered(queue.host, queue.name, sent.id))


def stands_for(one: Sent, other: Sent, queue: Queue) -> bool:
    """Whether the other is a duplicate: what is only in memory stands for nothing that has to be on disk."""
    return one.persistent or not (other.persistent and queue.durable)


def _is_safe(facts: Facts, queue: Queue, sent: Sent) -> bool:
    return (queue.durable and sent.persistent) or not (facts.owners_may_die or facts.topology_may_fade)
