"""Acknowledge, reject, requeue; AMQP 0-9-1 sections 1.8.3.13 (ack) to 1.8.3.16 (recover), and basic.nack."""

from __future__ import annotations

from collections import defaultdict
from itertools import takewhile

from services.common.errors import PreconditionFailed
from services.gateway import vocabulary as v
from services.gateway.consumer import Consumer, GetHolder
from services.gateway.session import Session
from services.gateway.transaction import Settlement
from services.rpc import queue_pb2

OUTCOMES = {
    v.Outcome.ACCEPT: queue_pb2.ACCEPT,
    v.Outcome.RELEASE: queue_pb2.RELEASE,
    v.Outcome.REJECT: queue_pb2.REJECT,
}


def settle(session: Session, request: v.Settle) -> None:
    outcome = OUTCOMES[request.outcome]
    numbers = _numbers(session, request)
    if session.transaction:
        _collect(session, numbers, outcome)
        return
    pop = session.unsettled.pop
    apply(session, [pop(number) for number in numbers], outcome)


async def recover(session: Session, _request: v.Recover) -> None:
    release_all(session)


def apply(
    session: Session, deliveries: list[tuple[Consumer | GetHolder, int]], outcome: queue_pb2.Outcome.ValueType
) -> None:
    """Tells the queues, and lets limited consumers have more."""
    by_holder: dict[Consumer | GetHolder, list[int]] = defaultdict(list)
    for holder, uid in deliveries:
        by_holder[holder].append(uid)
    for holder, uids in by_holder.items():
        session.broker.settle(holder.queue_id, outcome, uids)
        holder.returned(len(uids))
        if isinstance(holder, Consumer):
            session.connection.wrote(holder)
    if session.shared_limit:
        session.connection.wants_to_write(session)


def release_all(session: Session) -> None:
    """Everything unsettled goes back to its place."""
    deliveries = list(session.unsettled.values())
    session.unsettled.clear()
    apply(session, deliveries, queue_pb2.RELEASE)


def _numbers(session: Session, request: v.Settle) -> list[int] | range:
    unsettled, first, last = session.unsettled, request.first, request.last
    if last == 0:
        return list(unsettled)
    if last not in unsettled:
        raise PreconditionFailed(f"unknown delivery tag {last}")
    if first == 0:
        return list(takewhile(last.__ge__, unsettled))
    for number in (numbers := range(first, last + 1)):
        if number not in unsettled:
            raise PreconditionFailed(f"unknown delivery tag {number}")
    return numbers


def _collect(session: Session, numbers: list[int] | range, outcome: queue_pb2.Outcome.ValueType) -> None:
    assert session.transaction is not None
    for number in numbers:
        holder, uid = session.unsettled.pop(number)
        session.transaction.settlements.append(Settlement(number, holder, uid, outcome))
