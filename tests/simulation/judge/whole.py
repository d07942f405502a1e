"""A transaction is whole: all of its publishes and settlements, or nothing."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.history import Delivered, Transaction
from tests.simulation.judge.facts import Facts, Violation, told
from tests.simulation.judge.lost import Accounts, promised


def torn(facts: Facts) -> Iterator[Violation]:
    """Committed ones are judged copy by copy elsewhere; here those whose end no client knows, and undone ones."""
    accounts = Accounts(facts)
    for transaction in facts.history.transactions:
        if transaction.outcome == "unknown" or (transaction.outcome == "open" and transaction.asked):
            yield from _half(facts, accounts, transaction)


def _half(facts: Facts, accounts: Accounts, transaction: Transaction) -> Iterator[Violation]:
    seen, unseen = [], []
    for sent in transaction.published:
        if sent.ttl is not None:
            continue
        for name in sorted(facts.routes(sent).must):
            if facts.delivered(sent.host, name, sent.id):
                seen.append((sent, name))
            elif accounts.missing(sent, facts.queues[sent.host, name]):
                unseen.append((sent, name))
    if seen and unseen:
        yield Violation(
            "a transaction is whole",
            f"of one without an answer {told(seen[0][0])} is in {seen[0][1]},"
            f" {told(unseen[0][0])} not in {unseen[0][1]}",
        )
    back = [each for each in transaction.settled if each.settled_as == "ack" and _came_back(facts, each)]
    if seen and back:
        yield Violation(
            "a transaction is whole",
            f"of one without an answer {told(seen[0][0])} is in {seen[0][1]}, but {back[0].id}, acknowledged in it, is"
            f" still in {back[0].queue}",
        )
    without = Accounts(facts, transaction)
    taken = [each for each in transaction.settled if unseen and _is_gone(facts, without, each)]
    if taken:
        yield Violation(
            "a transaction is whole",
            f"of one without an answer {told(unseen[0][0])} is not in {unseen[0][1]}, but {taken[0].id}, acknowledged"
            f" in it, is gone from {taken[0].queue}",
        )


def _is_gone(facts: Facts, without: Accounts, delivered: Delivered) -> bool:
    """Whether what was acknowledged in it would have to be there otherwise."""
    sent, queue = facts.history.sent.get(delivered.id), facts.queues[delivered.host, delivered.queue]
    if sent is None or delivered.settled_as != "ack" or delivered.deaths or not promised(facts, sent):
        return False
    return queue.name in facts.routes(sent).must and bool(without.missing(sent, queue))


def _came_back(facts: Facts, delivered: Delivered) -> bool:
    if facts.may_be_deaf(delivered.channel.connection.gateway):
        return False
    if delivered.consumer and facts.browses(delivered.consumer):
        return False
    if facts.may_be_taken_from(delivered, float("inf")):
        return False
    others = facts.delivered(delivered.host, delivered.queue, delivered.id)
    return any(other.draining and other.deaths == delivered.deaths for other in others)
