"""Acknowledge, reject, requeue; AMQP 0-9-1 sections 1.8.3.13 (ack) to 1.8.3.16 (recover), and basic.nack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from services.common.clients.change import UNCHANGED, Change
from services.common.errors import PreconditionFailed
from services.gateway import outcomes
from services.gateway import vocabulary as v
from services.gateway.outcomes import FAILED, UNSENT, DeliveryOutcome
from services.gateway.sessions.consumer import Consumer, GetHolder
from services.gateway.sessions.delivery_numbers import Taken
from services.gateway.sessions.session import Session
from services.gateway.sessions.transaction import PendingSettlement, Transaction
from services.rpc import queue_pb2

_TO_QUEUE: Final[Mapping[type, Callable[[Any], queue_pb2.Outcome.ValueType]]] = {
    outcomes.Accepted: lambda _: queue_pb2.ACCEPT,
    outcomes.Rejected: lambda _: queue_pb2.REJECT,
    outcomes.Released: lambda _: queue_pb2.RETURN,
    outcomes.Modified: lambda outcome: queue_pb2.RELEASE if outcome.failed else queue_pb2.RETURN,
    outcomes.Unsent: lambda _: queue_pb2.RESTORE,
}


def to_queue(outcome: DeliveryOutcome) -> queue_pb2.Outcome.ValueType:
    """What a queue is told."""
    return _TO_QUEUE[type(outcome)](outcome)


def change_of(outcome: DeliveryOutcome, holder: Consumer | GetHolder) -> Change:
    """What it says besides, of what `holder` has."""
    if not isinstance(outcome, outcomes.Modified) or not (outcome.annotations or outcome.undeliverable):
        return UNCHANGED
    return Change(outcome.annotations, holder, outcome.undeliverable) if isinstance(holder, Consumer) else UNCHANGED


def settle(session: Session, request: v.Settle) -> None:
    outcome, numbers = request.outcome, session.numbers
    transaction = session.transactions.of(request.transaction)
    if request.first and request.last:
        taken, unknown = numbers.each(request.first, request.last)
    else:
        taken, unknown = numbers.up_to(request.last)
    if transaction:
        if request.first and request.last and sum(len(each.uids) for each in taken) <= request.last - request.first:
            transaction.fault = PreconditionFailed("a delivery was kept for too long, and is another's by now")
        taken = _collect(transaction, taken, outcome)
    if taken:
        apply(session, taken, outcome)
    if unknown:
        raise PreconditionFailed(f"unknown delivery tag {unknown}")


async def recover(session: Session, _request: v.Recover) -> None:
    release_all(session)


def apply(session: Session, taken: Sequence[Taken], outcome: DeliveryOutcome) -> None:
    """Tells the queues, and lets limited consumers have more."""
    to_tell, error = to_queue(outcome), getattr(outcome, "error", None)
    for holder, uids in _by_holder(taken):
        if holder.takes:
            session.broker.observer.settled(session.connection, holder.queue_id, to_tell, uids, error)
            session.broker.settle(holder.queue_id, to_tell, uids, heeded(change_of(outcome, holder), uids))
        holder.returned(len(uids))
        if isinstance(holder, Consumer):
            if outcome is UNSENT:
                holder.kept_back(len(uids))
            session.connection.wrote(holder)
    share_room(session)


def heeded(change: Change, uids: Iterable[int]) -> Change:
    """What is said of these counts from now on, at each owner of their queue."""
    if change.not_again and isinstance(change.by, Consumer):
        change.by.refuses(uids)
    return change


def _by_holder(taken: Sequence[Taken]) -> Iterable[tuple[Consumer | GetHolder, list[int]]]:
    """Each link is told of once, however they took turns."""
    if len(taken) == 1:
        return [(taken[0].holder, taken[0].uids)]
    by_holder: dict[Consumer | GetHolder, list[int]] = defaultdict(list)
    for each in taken:
        by_holder[each.holder] += each.uids
    return by_holder.items()


def share_room(session: Session) -> None:
    """What one consumer gives back of a limit over all, any of them may use."""
    if session.shared_limit:
        for consumer in session.consumers.values():
            session.connection.wrote(consumer)


def release_all(session: Session) -> None:
    """Everything unsettled goes back to its place."""
    apply(session, session.numbers.take_all(), FAILED)


def _collect(transaction: Transaction, taken: Sequence[Taken], outcome: DeliveryOutcome) -> list[Taken]:
    """For the transaction; gives what has never left its queue, which waits for none."""
    only_seen: list[Taken] = []
    for each in taken:
        if each.holder.takes:
            to_tell, change = to_queue(outcome), transaction.keeps(change_of(outcome, each.holder), len(each.uids))
            waiting = zip(each.numbers, each.uids, strict=True)
            transaction.settlements += (
                PendingSettlement(number, each.holder, uid, to_tell, change) for number, uid in waiting
            )
        else:
            only_seen.append(each)
    return only_seen
