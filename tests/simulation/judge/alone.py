"""Exclusive is exclusive: queues of one connection, consumers alone on their queue, single active ones, or few live."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.choices import LIVE, SINGLE
from tests.simulation.history import Consuming, Delivered
from tests.simulation.judge.facts import Facts, Queue, Violation


def touched(facts: Facts) -> Iterator[Violation]:
    """No other connection may use an exclusive queue."""
    for asked in facts.history.asked:
        if asked.what != "touch" or asked.outcome != "ok":
            continue
        for own in facts.asked("own", asked.host, asked.arguments["queue"]):
            since = own.answered if own.outcome == "ok" else None
            if since is not None and since < asked.asked and own.channel.held_until > (asked.answered or 0):
                yield Violation("exclusive is exclusive", f"{asked.arguments['queue']} was shown to another connection")


def shared(facts: Facts) -> Iterator[Violation]:
    """An exclusive consumer has its queue for itself, from its answer to its end."""
    for (_, queue), consumers in facts.consumers.items():
        for one in consumers:
            for other in consumers:
                if one is not other and (one.exclusive or other.exclusive) and _overlap(facts, one, other):
                    yield Violation(
                        "exclusive is exclusive",
                        f"{other.tag} was let in on {queue} while {one.tag} was there"
                        f" (exclusive: {one.tag if one.exclusive else other.tag})",
                    )


def _overlap(facts: Facts, one: Consuming, other: Consuming) -> bool:
    """Whether the other came while the one was certainly there."""
    if one.attached is None or other.attached is None or _unsure(facts, one):
        return False
    until = min(_end(one), one.channel.held_until)
    return one.attached < other.asked and other.attached < until and not one.cancelled_by_broker


def _unsure(facts: Facts, consuming: Consuming) -> bool:
    gateway = consuming.channel.connection.gateway
    return facts.troubled(gateway) or facts.may_be_deaf(gateway)


def _end(consuming: Consuming) -> int:
    return consuming.ending if consuming.ending is not None else consuming.channel.held_until


def _most(queue: Queue) -> int:
    """How many of its consumers are live; 0: all are."""
    return 1 if queue.arguments.get(SINGLE) else int(str(queue.arguments.get(LIVE, 0)))


def two_active(facts: Facts) -> Iterator[Violation]:
    """The oldest of a queue's consumers are active, one or few; judged where nothing fails, so that ages are known."""
    if facts.history.faults:
        return
    for at, queue in facts.queues.items():
        if not (most := _most(queue)):
            continue
        consumers = [
            each for each in facts.consumers.get(at, ()) if each.attached is not None and not facts.browses(each)
        ]
        for each in facts.taken:
            if (each.host, each.queue) != at or each.consumer is None or each.consumer.tag == "drain":
                continue
            beside = [
                older.tag
                for older in consumers
                if older.attached < each.consumer.asked  # type: ignore[operator]
                and min(_end(older), older.channel.held_until) > each.at
                and older is not each.consumer
                and not older.cancelled_by_broker
            ]
            if len(beside) >= most:
                text = f"{each.consumer.tag} was given {each.id} from {at[1]} beside {', '.join(beside)}"
                yield Violation("single active is one", text)


def two_served(facts: Facts) -> Iterator[Violation]:
    """Who is active stays so until it ends, also with a next owner: of those that live one, or few, are served."""
    if _may_go_unheard(facts):
        return
    for at, queue in facts.queues.items():
        if not (most := _most(queue)):
            continue
        served: dict[Consuming, None] = {}
        for each in _pushed(facts, at):
            assert each.consumer is not None
            others = [other.tag for other in served if _both_live(facts, other, each)]
            if len(others) >= most:
                text = f"{each.consumer.tag} was given {each.id} from {at[1]}, after and beside {', '.join(others)}"
                yield Violation("single active is one", text)
            served[each.consumer] = None


def _pushed(facts: Facts, at: tuple[str, str]) -> Iterator[Delivered]:
    for each in facts.taken:
        if (each.host, each.queue) == at and each.consumer is not None and not each.draining:
            yield each


def _both_live(facts: Facts, other: Consuming, delivered: Delivered) -> bool:
    """Whether both consumers were certainly there, for the broker too, as the one got this and the other before."""
    both = (other, delivered.consumer)
    return other is not delivered.consumer and all(
        not (_unsure(facts, each) or each.cancelled_by_broker or each.no_ack)
        and min(_end(each), each.channel.held_until) > delivered.at
        for each in both
        if each is not None
    )


def _may_go_unheard(facts: Facts) -> bool:
    """Whether gateways may have heard of the next owner too late to tell it the active consumer; see `_unsure`."""
    return bool(facts.faults("kill", "stop", "pause", "starve", "cut", "deafen", "slow", of="store"))
