"""Nothing is invented, changed, misrouted, delivered to two, or seen again once it is acknowledged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from tests.simulation.choices import CHOICES
from tests.simulation.history import ADDED, NEVER, SAID, Delivered, Sent
from tests.simulation.judge.facts import Facts, Violation, headers_left, told

_CLOCKS = 1.0  # seconds by which those of two processes may differ here
_COUNTS = ("x-delivery-count", "x-acquired-count")  # of queues that limit attempts, also by a policy
_HOW = {"ack": "and its channel answered later", "none": "as it was delivered"}


def invented(facts: Facts) -> Iterator[Violation]:
    """Every delivery is of a message that was published, as it was published, in a queue that it may have reached."""
    for each in facts.history.deliveries:
        sent = facts.history.sent.get(each.id)
        if sent is None:
            yield Violation("nothing is invented", f"{each.id!r} was delivered from {each.queue}, and never published")
        elif wrong := _changed(facts, sent, each):
            yield Violation("nothing is changed", f"{told(sent)} was delivered from {each.queue} with another {wrong}")
        elif wrong := _out_of_place(facts, sent, each):
            yield Violation("nothing is delivered but where it was routed", f"{told(sent)}: {wrong}")


def unwanted(facts: Facts) -> Iterator[Violation]:
    """A consumer gets what it selects, and nothing else (JMS 3.8.1)."""
    for each in facts.history.deliveries:
        selector = each.consumer.selector if each.consumer else ""
        sent = facts.history.sent.get(each.id)
        if selector and sent and not CHOICES[selector](sent):
            yield Violation("a consumer gets what it selects", f"{told(sent)} was delivered to one with {selector!r}")


def before(facts: Facts) -> Iterator[Violation]:
    """A consumer with a period is not given what came before that. Clocks may be set."""
    if facts.faults("jump_clock", "suspend"):
        return
    for each in facts.history.deliveries:
        sent, consumer = facts.history.sent.get(each.id), each.consumer
        if sent is None or consumer is None or consumer.replay is None or sent.confirmed is None or each.deaths:
            continue
        asked = facts.history.time_of(consumer.asked)
        if facts.history.time_of(sent.confirmed) + consumer.replay + _CLOCKS < asked:
            yield Violation("a period is kept", f"{told(sent)} came to {consumer.tag}, with one of {consumer.replay} s")


def local(facts: Facts) -> Iterator[Violation]:
    """A consumer that does not want what its own connection publishes does not get it, from when it is there."""
    for each in facts.history.deliveries:
        sent, consumer = facts.history.sent.get(each.id), each.consumer
        if sent is None or consumer is None or consumer.attached is None or each.deaths or not facts.spares(consumer):
            continue
        if sent.channel.connection is consumer.channel.connection and sent.at > consumer.attached:
            yield Violation("no-local", f"{told(sent)} was delivered to {consumer.tag}, of the connection that sent it")


def _changed(facts: Facts, sent: Sent, delivered: Delivered) -> str:
    properties = delivered.properties
    letter_of = facts.queues.get((sent.host, delivered.deaths[0][0])) if delivered.deaths else None
    headers = {
        name: value
        for name, value in (properties.headers or {}).items()
        if not (delivered.deaths and (name == "x-death" or name.startswith("x-first-death-")))
    }
    for name in (SAID, ADDED):  # what others have said of it is judged by itself (modified.py)
        headers.pop(name, None)
    failed, acquired = (int(headers.pop(name, 0)) for name in _COUNTS)
    ttl = None if sent.ttl is None or delivered.deaths else str(sent.ttl)
    checks = {
        "body": delivered.intact and len(sent.id) > 0,
        "message id": properties.message_id == sent.id,
        "delivery mode": properties.delivery_mode == (2 if sent.persistent else 1),
        "priority": (properties.priority or 0) == sent.priority,
        "expiration": properties.expiration == ttl,
        "count": failed <= acquired and (failed > 0) <= delivered.redelivered,
        "headers": headers == headers_left(sent, letter_of),
        "exchange": bool(delivered.deaths) or delivered.exchange in {None, sent.exchange},
        "routing key": bool(delivered.deaths) or delivered.key in {None, sent.key},
    }
    return next((name for name, right in checks.items() if not right), "")


def _out_of_place(facts: Facts, sent: Sent, delivered: Delivered) -> str:
    if sent.host != delivered.host:
        return f"delivered in virtual host {delivered.host}"
    if sent.transaction and sent.transaction.outcome in {"rolled_back", "refused"}:
        return f"delivered from {delivered.queue}, though its transaction was {sent.transaction.outcome}"
    if not delivered.deaths:
        if delivered.queue not in facts.routes(sent).may:
            return f"delivered from {delivered.queue}, where no binding leads"
        return _from_before(facts, sent, delivered)
    source, reason, _ = delivered.deaths[0]
    queue = facts.queues.get((sent.host, source))
    routes = facts.letters(sent, queue) if queue else None
    if queue is None or routes is None or delivered.queue not in routes.may:
        return f"dead letter in {delivered.queue} that does not come from there: {delivered.deaths}"
    plausible = {
        "rejected": any(each.settled_as == "reject" for each in facts.delivered(sent.host, source, sent.id)),
        "expired": sent.ttl is not None or "x-message-ttl" in queue.arguments,
        "maxlen": "x-max-length" in queue.arguments,
        "delivery_limit": "x-delivery-limit" in queue.arguments,
    }
    return "" if plausible.get(reason) else f"dead letter from {source} for no reason: {reason}"


def _from_before(facts: Facts, sent: Sent, delivered: Delivered) -> str:
    """What was routed before its queue was deleted is not in the next queue of that name."""
    bound = facts.book(sent.host).bound(sent)
    for deleted in facts.asked("delete_queue", sent.host, delivered.queue):
        certain = deleted.outcome == "ok" and deleted.answered is not None and not deleted.attempts
        if not certain or deleted.asked <= bound:
            continue
        again = [each for each in facts.asked("queue", sent.host, delivered.queue) if each.asked > deleted.asked]
        consumer = delivered.consumer
        fresh = consumer is None or consumer.asked > deleted.answered  # type: ignore[operator]
        if again and fresh and delivered.at > again[0].asked:
            return f"delivered from {delivered.queue}, which was deleted meanwhile and declared again"
    return ""


def seen_again(facts: Facts) -> Iterator[Violation]:
    """What was acknowledged, and known to be, does not come again."""
    for (_, queue, message), deliveries in facts.deliveries.items():
        sent = facts.history.sent.get(message)
        for done in deliveries:
            if sent is None or not _settled_for_good(facts, done):
                continue
            again = next((each for each in deliveries if _is_again(facts, done, each)), None)
            if again:
                how = "in a committed transaction" if done.transaction else _HOW[done.settled_as]
                when = "in the end" if again.draining else f"given to {again.channel.connection.client} later"
                yield Violation(
                    "acknowledged is never seen again",
                    f"{told(sent)} was acknowledged in {queue} by {done.channel.connection.client} {how}, and was"
                    f" there {when} (redelivered: {again.redelivered})",
                )


def _is_again(facts: Facts, done: Delivered, other: Delivered) -> bool:
    """Whether `other` is the same copy, which its gateway could know to be done with.

    A gateway that stands still has read what an owner sent it; if that dies meanwhile, the next owner waits only for
    gateways that are awake.
    """
    return _is_later(done, other) and _same_copy(facts, done, other) and not facts.passed_on_late(other, done)


def _is_later(done: Delivered, other: Delivered) -> bool:
    """Whether it came after the end of the one; what had gone out before may arrive until everything is quiet."""
    since = done.transaction.answered if done.transaction else done.known
    if other.draining or done.settled_as == "none":
        since = done.settled
    return since is not None and other.at > since and not (_late(other) or _may_be_taken_back(other))


def _settled_for_good(facts: Facts, delivered: Delivered) -> bool:
    if delivered.settled_as == "none":
        # It is done with as it is sent, which a next owner knows if it is told in good order.
        return not delivered.draining and not facts.owners_may_die
    if delivered.settled_as != "ack" or delivered.draining or _too_late(facts, delivered):
        return False
    gateway = delivered.channel.connection.gateway
    remembered = not facts.troubled(gateway) and not facts.may_be_deaf(gateway)
    if delivered.transaction:
        # What is not on disk is known to its owner and to the gateway, and to no other process.
        kept = facts.is_on_disk(delivered) or remembered or not facts.owners_may_die
        return delivered.transaction.outcome == "committed" and kept
    return delivered.known is not None and remembered


def _too_late(facts: Facts, delivered: Delivered) -> bool:
    """Whether it may have been kept for too long before it was acknowledged."""
    done = delivered.transaction.answered if delivered.transaction else delivered.settled
    return facts.may_be_taken_from(delivered, facts.history.time_of(NEVER if done is None else done))


def _same_copy(facts: Facts, one: Delivered, other: Delivered) -> bool:
    """Of dead letters another one may be there only where what told that of the first is gone with it."""
    if one is other or one.deaths != other.deaths:
        return False
    return not one.deaths or _came_once(facts, one)


def _came_once(facts: Facts, letter: Delivered) -> bool:
    """Whether a queue must have had one copy of a dead letter, though its former queues had other owners meanwhile."""
    return (facts.is_on_disk(letter) and not facts.owners_died_at_once(letter.time)) or not facts.owners_may_die


def held_by_two(facts: Facts) -> Iterator[Violation]:
    """What one client holds is not given to another, also after a change of owner."""
    for (_, queue, message), deliveries in facts.deliveries.items():
        for before, after in pairwise(deliveries):
            sent = facts.history.sent.get(message)
            held = before.settled is None or before.settled > after.at
            if sent is None or not held or not _same_copy(facts, before, after) or _late(after):
                continue
            gateway = before.channel.connection.gateway
            if facts.troubled(gateway) or facts.may_be_deaf(gateway) or facts.passed_on_late(after, before):
                continue
            if facts.may_be_taken_from(before, after.time):
                continue
            if before.channel.held_until > after.at and not _may_be_taken_back(after):
                yield Violation(
                    "what one holds is nobody else's",
                    f"{told(sent)} was delivered from {queue} to {after.channel.connection.client} (tag {after.tag})"
                    f" while {before.channel.connection.client} held it (tag {before.tag})",
                )


def _may_be_taken_back(delivered: Delivered) -> bool:
    """Whether the broker may have given it to another client while it was on its way: it ended the channel first, or
    another had the link.
    """
    ended = not delivered.channel.held_until or (delivered.consumer is not None and delivered.consumer.stolen)
    return ended and delivered.known is None


def twice(facts: Facts) -> Iterator[Violation]:
    """When everything is healed and emptied, a copy is there once at most."""
    for (_, queue, message), deliveries in facts.deliveries.items():
        sent = facts.history.sent.get(message)
        left = [each for each in deliveries if each.draining and not each.deaths and each.settled_as == "ack"]
        if sent and len(left) > 1:
            yield Violation("nothing is there twice", f"{told(sent)} came {len(left)} times when {queue} was emptied")
        letters = (_way(each) for each in deliveries if each.draining and each.deaths and each.settled_as == "ack")
        if sent and (again := next((way for way, count in Counter(letters).items() if count > 1), None)):
            what = f"a dead letter of {told(sent)}, of {dict(again)}, came again when {queue} was emptied"
            yield Violation("nothing is there twice", what)


def _way(letter: Delivered) -> tuple[tuple[str, int], ...]:
    """The queues where it died, and how often in each: by whatever reason, it did so once."""
    return tuple((queue, count) for queue, _, count in letter.deaths)


def _late(delivered: Delivered) -> bool:
    """Whether it was on its way when its client gave it back unseen, and another client may have had it since."""
    ends = (delivered.settled, delivered.channel.leaving, delivered.channel.ending, delivered.channel.connection.ending)
    return any(at is not None and at < delivered.at for at in ends)


def doubled(facts: Facts) -> Iterator[Violation]:
    """Where nothing fails, a message comes to a queue once, and says so when it comes again."""
    if facts.history.faults:
        return
    for (_, queue, message), deliveries in facts.deliveries.items():
        sent = facts.history.sent.get(message)
        # What was released is as if it had not been delivered.
        after = {id(other) for one, other in pairwise(deliveries) if not one.attempt}
        new = [each for each in deliveries if not (each.redelivered or each.deaths or id(each) in after)]
        if sent and len(new) > 1:
            yield Violation("what comes again says so", f"{told(sent)} came {len(new)} times from {queue} as new")


def marked(facts: Facts) -> Iterator[Violation]:
    """Where nothing fails, what is said to come again has been given to somebody before."""
    if facts.history.faults:
        return
    for (_, queue, message), (each, *_) in facts.deliveries.items():
        sent = facts.history.sent.get(message)
        if sent and each.redelivered and not each.deaths and not _unseen(facts, sent, each):
            yield Violation(
                "what comes again did come", f"{told(sent)} came from {queue} as redelivered, and never before"
            )


def _unseen(facts: Facts, sent: Sent, delivered: Delivered) -> bool:
    return facts.gone_unseen(sent, facts.queues[delivered.host, delivered.queue], delivered.at)
