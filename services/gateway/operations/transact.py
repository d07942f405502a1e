"""Transactions: tx.select, tx.commit, tx.rollback (AMQP 0-9-1 section 1.9); declare and discharge (AMQP 1.0 part 4)."""

from __future__ import annotations

from services.common.errors import BrokerError, InDoubt, PreconditionFailed
from services.gateway import vocabulary as v
from services.gateway.operations.publish import give_up, hold_back
from services.gateway.operations.settle import heeded, share_room
from services.gateway.sessions.consumer import Consumer
from services.gateway.sessions.session import Session
from services.gateway.sessions.transaction import Transaction


async def select(session: Session, _request: v.SelectTransactions) -> None:
    if session.inbound.confirmed:
        raise PreconditionFailed("cannot switch from confirm to tx mode")
    session.transactions.select(session.broker.transactions.open)


async def declare(session: Session, _request: v.DeclareTransaction) -> int:
    return session.transactions.declare(session.broker.transactions.open)


async def commit(session: Session, request: v.Commit) -> None:
    transaction = session.transactions.under_way(request.transaction)
    try:
        if transaction.fault:
            raise transaction.fault
        await session.broker.transactions.commit(transaction)
    except InDoubt:  # its session ends, and with it go the settlements
        transaction.in_doubt()
        transaction.publications.clear()
        raise
    except BrokerError:
        _undo(session, transaction, request.transaction)
        raise
    session.transactions.ended(request.transaction)
    for each in transaction.publications:
        if len(each.unrouted) and not each.request.first:
            give_up(session, each)
    transaction.committed()
    hold_back(session, transaction.publications)
    _give_room(session, transaction)


def _give_room(session: Session, transaction: Transaction) -> None:
    for each in transaction.settlements:
        session.broker.observer.settled(session.connection, each.holder.queue_id, each.outcome, [each.uid])
        heeded(each.change, [each.uid])
        each.holder.returned(1)
        if isinstance(each.holder, Consumer):
            session.connection.wrote(each.holder)
    share_room(session)


async def rollback(session: Session, request: v.Rollback) -> None:
    _undo(session, session.transactions.under_way(request.transaction), request.transaction)


def _undo(session: Session, transaction: Transaction, number: int) -> None:
    """Nothing of it was done: what was settled in it is unsettled again."""
    transaction.rolled_back()
    for each in transaction.settlements:
        session.numbers.put_back(each.holder, each.number, each.uid)
    for holder in dict.fromkeys(each.holder for each in transaction.settlements):
        if isinstance(holder, Consumer) and holder.timeout:
            holder.timeout.sent(session.numbers.next)
    session.transactions.ended(number)
