"""Acknowledge, reject, requeue; AMQP 0-9-1 sections 1.8.3.13 (ack) to 1.8.3.16 (recover), and basic.nack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from services.common.errors import PreconditionFailed
from services.gateway import outcomes
from services.gateway import vocabulary as v
from services.gateway.outcomes import FAILED, UNSENT, DeliveryOutcome
from services.gateway.sessions.consumer import Consumer, GetHolder
from services.gateway.sessions.session import Session
from services.gateway.sessions.transaction import PendingSettlement, Transaction
from services.rpc import queue_pb2


def _of_modified(outcome: outcomes.Modified) -> queue_pb2.Outcome.ValueType:
    """What is not for its client again is dead-lettered, as RabbitMQ does: there is no other place to take it to."""
    if outcome.undeliverable:
        return queue_pb2.REJECT
    return queue_pb2.RELEASE if outcome.failed else queue_pb2.RETURN


_TO_QUEUE: Final[Mapping[type, Callable[[Any], queue_pb2.Outcome.ValueType]]] = {
    outcomes.Accepted: lambda _: queue_pb2.ACCEPT,
    outcomes.Rejected: lambda _: queue_pb2.REJECT,
    outcomes.Released: lambda _: queue_pb2.RETURN,
    outcomes.Modified: _of_modified,
    outcomes.Unsent: lambda _: queue_pb2.RESTORE,
}


def to_queue(outcome: DeliveryOutcome) -> queue_pb2.Outcome.ValueType:
    """What a queue is told."""
    return _TO_QUEUE[type(outcome)](outcome)


def settle(session: Session, request: v.Settle) -> None:
    outcome, unsettled = request.outcome, session.unsettled
    if request.first and request.last:
        known, unknown = _each(session, request.first, request.last)
    else:
        known, unknown = _up_to(session, request.last)
    if transaction := session.transactions.of(request.transaction):
        if only_seen := _collect(session, transaction, known, to_queue(outcome)):
            apply(session, only_seen, outcome)
    else:
        apply(session, [unsettled.pop(number) for number in known], outcome)
    if unknown:
        raise PreconditionFailed(f"unknown delivery tag {unknown}")


async def recover(session: Session, _request: v.Recover) -> None:
    release_all(session)


def apply(session: Session, deliveries: list[tuple[Consumer | GetHolder, int]], outcome: DeliveryOutcome) -> None:
    """Tells the queues, and lets limited consumers have more."""
    to_tell, error = to_queue(outcome), getattr(outcome, "error", None)
    by_holder: dict[Consumer | GetHolder, list[int]] = defaultdict(list)
    for holder, uid in deliveries:
        by_holder[holder].append(uid)
    for holder, uids in by_holder.items():
        if holder.takes:
            session.broker.observer.settled(session.connection, holder.queue_id, to_tell, uids, error)
            session.broker.settle(holder.queue_id, to_tell, uids)
        holder.returned(len(uids))
        if isinstance(holder, Consumer):
            if outcome is UNSENT:
                holder.kept_back(len(uids))
            session.connection.wrote(holder)
    share_room(session)


def share_room(session: Session) -> None:
    """What one consumer gives back of a limit over all, any of them may use."""
    if session.shared_limit:
        for consumer in session.consumers.values():
            session.connection.wrote(consumer)


def release_all(session: Session) -> None:
    """Everything unsettled goes back to its place."""
    deliveries = list(session.unsettled.values())
    session.unsettled.clear()
    apply(session, deliveries, FAILED)


def _each(session: Session, first: int, last: int) -> tuple[Sequence[int], int]:
    """What was settled one by one, up to the first that is unknown: those before it were said before it."""
    unsettled, late = session.unsettled, session.late
    numbers = range(first, last + 1)
    for number in numbers:
        if number not in unsettled and number not in late:
            return _but(range(first, number), late), number
    return _but(numbers, late), 0


def _but(numbers: range, late: AbstractSet[int]) -> Sequence[int]:
    """Of those that were taken away meanwhile nothing more can be said."""
    return [number for number in numbers if number not in late] if late else numbers


def _up_to(session: Session, last: int) -> tuple[Sequence[int], int]:
    """Everything up to `last`, 0: everything. Each number is looked at once in the life of a session."""
    unsettled = session.unsettled
    if last and last not in unsettled and last not in session.late:
        return (), last
    last = last or session.next_number - 1
    first, session.oldest = session.oldest, last + 1
    return [number for number in range(first, last + 1) if number in unsettled], 0


def _collect(
    session: Session, transaction: Transaction, numbers: Sequence[int], outcome: queue_pb2.Outcome.ValueType
) -> list[tuple[Consumer | GetHolder, int]]:
    """For the transaction; gives what has never left its queue, which waits for none."""
    only_seen: list[tuple[Consumer | GetHolder, int]] = []
    for number in numbers:
        holder, uid = session.unsettled.pop(number)
        if holder.takes:
            transaction.settlements.append(PendingSettlement(number, holder, uid, outcome))
        else:
            only_seen.append((holder, uid))
    return only_seen
