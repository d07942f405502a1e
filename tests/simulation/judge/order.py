"""First deliveries are in order: of one channel's publishes to one exchange, out of one queue, to one consumer."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.choices import HOLDS, LEVELS, SORTED
from tests.simulation.history import NEVER, Asked, Delivered, Sent
from tests.simulation.judge.facts import Facts, Queue, Violation, told
from tests.simulation.judge.ranked import key_of

_UNHEARD = 1.0  # seconds


def disordered(facts: Facts) -> Iterator[Violation]:
    """AMQP 0-9-1, 4.7."""
    if facts.any_may_be_deaf or facts.faults("kill", "stop", of="gateway-"):
        return
    highest: dict[tuple[object, ...], tuple[int, Sent]] = {}
    for each in facts.taken:
        sent = facts.history.sent.get(each.id)
        queue = facts.queues.get((each.host, each.queue))
        if sent is None or queue is None or each.redelivered or each.deaths or each.consumer is None:
            continue
        if facts.history.faults and _may_go(sent, queue):
            continue  # it was refused or had expired, and its publisher did not hear that: it may come again, as new
        if facts.delivered(each.host, each.queue, each.id)[0] is not each:
            continue  # once more, of an owner that does not know that its former had sent it
        stream = (
            id(each.consumer),
            id(sent.channel),
            sent.exchange,
            sent.link,
            id(sent.transaction) if sent.link else 0,  # links have several at once, and each comes with its commit
            _level(queue, sent),
            _group(queue, sent),
        )
        number, other = highest.get(stream, (0, None))
        if other is not None and sent.number < number and not _may_be_behind(facts, each, sent, other):
            yield Violation(
                "first deliveries are in order",
                f"{told(sent)} was delivered from {each.queue} after {other.id}, which was published after it",
            )
        if sent.number > number:
            highest[stream] = (sent.number, sent)


def _may_go(sent: Sent, queue: Queue) -> bool:
    return sent.immediate or sent.ttl is not None or bool({"x-overflow", "x-message-ttl"} & queue.arguments.keys())


def _level(queue: Queue, sent: Sent) -> object:
    """Of messages with one the order is that of arrival."""
    if SORTED in queue.arguments:
        return key_of(sent) or ""
    if LEVELS in queue.arguments:
        return sent.priority
    most = queue.arguments.get("x-max-priority")
    return min(sent.priority, int(str(most))) if most else 0


def _group(queue: Queue, sent: Sent) -> object:
    """One group may wait for its consumer while others go on."""
    return sent.headers.get("colour") if "qpid.group_header_key" in queue.arguments else None


def _may_be_behind(facts: Facts, delivered: Delivered, sent: Sent, other: Sent) -> bool:
    return (
        _waited(facts, delivered, sent)
        or _others(facts, delivered, sent)
        or _outlived(facts, sent, other)
        or _purged(facts, delivered, sent)
    )


def _waited(facts: Facts, delivered: Delivered, sent: Sent) -> bool:
    """Whether others went on while it waited for its time."""
    return sent.due is not None and HOLDS in facts.queues[delivered.host, delivered.queue].arguments


def _purged(facts: Facts, delivered: Delivered, sent: Sent) -> bool:
    """Whether it went before its publisher had the confirm, or with a purge that was not answered: if its owner died
    then, it comes again.
    """
    purges = facts.asked("purge", delivered.host, delivered.queue)
    return facts.owners_may_die and any(
        sent.at < _until(each) and each.asked < delivered.at and not _for_good(sent, each) for each in purges
    )


def _until(purge: Asked) -> int:
    return NEVER if purge.answered is None or purge.outcome != "ok" else purge.answered


def _for_good(sent: Sent, purge: Asked) -> bool:
    return purge.outcome == "ok" and sent.confirmed is not None and sent.confirmed < purge.asked


def _others(facts: Facts, delivered: Delivered, sent: Sent) -> bool:
    """Whether another consumer may have got it, and given it back unseen: it keeps its place, others were faster."""
    consumers = facts.consumers.get((delivered.host, delivered.queue), ())
    # That a client is gone is heard of a little later than it knows itself.
    since = min(other.at for other in facts.history.sent.values() if other.time > sent.time - _UNHEARD)
    return any(
        each is not delivered.consumer and each.asked < delivered.at and (each.ending is None or each.ending > since)
        for each in consumers
    ) or _limited_together(delivered)


def _outlived(facts: Facts, sent: Sent, other: Sent) -> bool:
    """Whether an owner may have died with the one, and left the other on disk: the one came again, behind it."""
    return facts.owners_may_die and other.persistent and not sent.persistent


def _limited_together(delivered: Delivered) -> bool:
    return delivered.channel.shared_limit
