"""What says when it may be delivered waits in queues that hold: not a moment less, and not longer than it has to."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.choices import GIVES_ALL, HOLDS
from tests.simulation.history import NEVER, Consuming, Delivered, Sent
from tests.simulation.judge.facts import Facts, Queue, Violation, told
from tests.simulation.judge.words import lives_for

_MARGIN = 0.01  # seconds: clocks run at rates of their own, and tell milliseconds
_FOLLOWS = 0.2  # of the time since a clock was set: what a gateway's and an owner's may differ by, each a tenth
_PATIENCE = 1.0  # seconds that what is due may take where nothing fails
_EARLIER = 0.1  # seconds: times to live that end so much before a delay end before it on all clocks


def early(facts: Facts) -> Iterator[Violation]:
    """Nothing is delivered before its time by a queue that holds it."""
    if facts.clocks_may_differ:
        return
    for sent, queue, deliveries in _held(facts):
        seen = [each for each in facts.shown if (each.host, each.queue, each.id) == (queue.host, queue.name, sent.id)]
        for each in [*deliveries, *seen]:
            if each.time < (sent.due or 0.0) - _slack(facts, each):
                when = f"at {each.time:.3f} s, and due at {sent.due:.3f} s"
                yield Violation(
                    "nothing is delivered before its time", f"{told(sent)} was delivered from {queue.name} {when}"
                )
                break


def _slack(facts: Facts, delivered: Delivered) -> float:
    jumps = [fault.time for fault in facts.faults("jump_clock") if fault.time < delivered.time]
    return _MARGIN + (_FOLLOWS * (delivered.time - min(jumps)) if jumps else 0.0)


def outlived(facts: Facts) -> Iterator[Violation]:
    """What expires before its time is not delivered. It lives from when it is read: late, of who is held back."""
    if facts.faults("jump_clock", "disk_low") or facts.any_held_back:
        return
    for sent, queue, deliveries in _held(facts):
        lives, due = lives_for(sent, queue), sent.due or 0.0
        if deliveries and lives is not None and sent.time + lives / 1000 < due - _EARLIER and _prompt(sent):
            yield Violation(
                "what expires before its time is not delivered",
                f"{told(sent)} was delivered from {queue.name}, due at {sent.due} s, to live for {lives} ms",
            )


def _prompt(sent: Sent) -> bool:
    """Whether it has lived since it was sent: one of a transaction lives from the commit on."""
    return sent.transaction is None


def overdue(facts: Facts) -> Iterator[Violation]:
    """Where nothing fails, what is due is delivered to a consumer that takes all that there is."""
    if facts.history.faults:
        return
    for sent, queue, deliveries in _held(facts):
        if sent.confirmed is None or queue.arguments.keys() - GIVES_ALL or queue.name not in facts.routes(sent).must:
            continue
        due = _due_by(sent, facts.history.time_of(sent.confirmed))
        if any(each.time < due + _PATIENCE for each in deliveries) or _may_be_gone(facts, sent, queue, due):
            continue
        if any(_waits(facts, consumer, due) for consumer in facts.consumers.get((queue.host, queue.name), ())):
            came = f"{deliveries[0].time:.3f} s" if deliveries else "never"
            yield Violation(
                "what is due is delivered", f"{told(sent)} was due in {queue.name} at {due:.3f} s, and came {came}"
            )


def _due_by(sent: Sent, taken: float) -> float:
    """At the latest: a delay counts from when it is read, and its client may have been held back until then."""
    return max(sent.due or 0.0, taken + (sent.headers["x-delay"] / 1000 if "x-delay" in sent.headers else 0.0))


def _may_be_gone(facts: Facts, sent: Sent, queue: Queue, due: float) -> bool:
    at = queue.host, queue.name
    ended = any(facts.asked(what, *at) for what in ("purge", "delete_queue"))
    refused = sent.immediate or sent.returned is not None  # nobody can take at once what is not due
    return ended or refused or (sent.ttl is not None and sent.time + sent.ttl / 1000 < due + _PATIENCE)


def _waits(facts: Facts, consumer: Consuming, due: float) -> bool:
    """Whether a consumer was there all the time, with no limit to what it holds, and takes everything."""
    if (
        consumer.attached is None
        or consumer.selector
        or consumer.channel.limited
        or consumer.replay is not None
        or facts.browses(consumer)
        or consumer.no_local
    ):
        return False
    history = facts.history
    end = min(consumer.channel.held_until, NEVER if consumer.ending is None else consumer.ending)
    return history.time_of(consumer.attached) < due and due + _PATIENCE < history.time_of(end)


def _held(facts: Facts) -> Iterator[tuple[Sent, Queue, list[Delivered]]]:
    """Messages that say a time, in each queue that holds them: with their deliveries, but as dead letters."""
    for (host, name), queue in facts.queues.items():
        for sent in facts.history.sent.values() if HOLDS in queue.arguments else ():
            if sent.host == host and sent.due is not None:
                found = [each for each in facts.delivered(host, name, sent.id) if not each.deaths]
                yield sent, queue, found
