"""What was purged stays away, once that is answered."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.history import Asked, Delivered, Sent
from tests.simulation.judge.facts import Facts, Violation, told

_UNHEARD = 1.0  # seconds: that a client is gone is heard of a little later than it knows itself


def brought_back(facts: Facts) -> Iterator[Violation]:
    """A message that waited in a queue when that was purged is not in it after the answer, also with a new owner."""
    purges = [each for each in facts.history.asked if each.what == "purge" and each.outcome == "ok"]
    for (host, name, message), deliveries in facts.deliveries.items():
        sent = facts.history.sent.get(message)
        for purge in purges:
            if (purge.host, purge.arguments["queue"]) != (host, name) or sent is None or deliveries[0].deaths:
                continue
            if _waited(facts, sent, deliveries[0], purge):
                yield Violation(
                    "purged is never seen again", f"{told(sent)} was delivered from {name}, which was purged meanwhile"
                )


def _waited(facts: Facts, sent: Sent, delivered: Delivered, purge: Asked) -> bool:
    """Whether it was certainly there when the queue was purged, and came after all."""
    if sent.transaction or sent.confirmed is None or sent.confirmed > purge.asked:
        return False
    if purge.answered is None or delivered.at < purge.answered or not facts.is_on_disk(delivered):
        return False
    return not _others_may_have_had_it(facts, sent, delivered, purge.answered)


def _others_may_have_had_it(facts: Facts, sent: Sent, delivered: Delivered, answered: int) -> bool:
    """A consumer that held it, and gives it back unseen afterwards, brings it back rightly."""
    since = min(each.at for each in facts.history.sent.values() if each.time > sent.time - _UNHEARD)
    at = delivered.host, delivered.queue
    consumed = any(
        each.asked < answered and (each.ending is None or each.ending > since) for each in facts.consumers.get(at, ())
    )
    got = any(
        each.asked < answered and (each.answered is None or each.answered > since) for each in facts.asked("get", *at)
    )
    return consumed or got
