"""Who publishes to a queue that has too much is held back; who does not go on once there is room, is stuck."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.choices import HELD_BACK, MOST
from tests.simulation.history import NEVER, Sent
from tests.simulation.judge.facts import Facts, Queue, Violation, told

_SOON = 0.5  # seconds in which a gateway hears that a queue has too much


def taken(facts: Facts) -> Iterator[Violation]:
    """Where nothing fails: a connection publishes once to a queue that has too much, and what it sends then waits."""
    if facts.history.faults:
        return
    for queue in facts.queues.values():
        at = queue.host, queue.name
        if queue.arguments.items() >= HELD_BACK.items() and MOST in queue.arguments and not facts.asked("purge", *at):
            yield from _beyond(facts, queue, int(str(queue.arguments[MOST])))


def _beyond(facts: Facts, queue: Queue, most: int) -> Iterator[Violation]:
    time_of = facts.history.time_of
    found = sorted((_taken_at(facts, sent), sent.at, sent) for sent in _of(facts, queue))
    certain = [(at, sent) for at, _, sent in found if at != NEVER]
    for at, sent in certain:
        waiting = [taken for taken, each in certain if taken < at and _waits(facts, queue, each, at)]
        if len(waiting) <= most:
            continue
        full = time_of(waiting[most])  # since then it has had too much, all the time
        for before, one in certain:
            same = one.channel.connection is sent.channel.connection
            if same and one.time > full + _SOON and sent.time > time_of(before) + _SOON:
                yield Violation(
                    "who publishes to a full queue is held back",
                    f"{told(sent)} was taken by {queue.name}, which has had more than {most} since {full:.3f} s,"
                    f" and had {one.id} from the same connection, taken at {time_of(before):.3f} s",
                )
                break


def _of(facts: Facts, queue: Queue) -> list[Sent]:
    return [
        sent
        for sent in facts.history.sent.values()
        if sent.host == queue.host and sent.ttl is None and queue.name in facts.routes(sent).must
    ]


def _taken_at(facts: Facts, sent: Sent) -> int:
    """When the broker had certainly taken it."""
    if (its := sent.transaction) is not None:  # until its commit is answered its queue need not have it
        return NEVER if its.outcome != "committed" or its.answered is None else its.answered
    return facts.book(sent.host).bound(sent)


def _waits(facts: Facts, queue: Queue, sent: Sent, at: int) -> bool:
    """Whether a message that had come was certainly there, with nobody."""
    first = next(iter(facts.delivered(queue.host, queue.name, sent.id)), None)
    return first is not None and not first.redelivered and first.time > facts.history.time_of(at) + _SOON
