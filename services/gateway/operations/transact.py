"""tx.select, tx.commit, tx.rollback: AMQP 0-9-1 section 1.9."""

from __future__ import annotations

from services.common.errors import BrokerError, PreconditionFailed
from services.gateway import vocabulary as v
from services.gateway.operations.publish import give_up, hold_back
from services.gateway.operations.settle import share_room
from services.gateway.sessions.consumer import Consumer
from services.gateway.sessions.session import Session
from services.gateway.sessions.transaction import InDoubt, Transaction


async def select(session: Session, _request: v.SelectTransactions) -> None:
    if session.inbound.confirmed:
        raise PreconditionFailed("cannot switch from confirm to tx mode")
    session.transaction = session.transaction or Transaction(session.broker.transactions.open)


async def commit(session: Session, _request: v.Commit) -> None:
    transaction = _current(session)
    try:
        await session.broker.transactions.commit(transaction)
    except BrokerError as error:
        if isinstance(error, InDoubt):
            transaction.in_doubt()
        else:
            transaction.rolled_back()
        transaction.publications.clear()
        raise
    session.transaction = Transaction(session.broker.transactions.open)
    for each in transaction.publications:
        if len(each.unrouted):
            give_up(session, each)
    transaction.committed()
    hold_back(session, transaction.publications)
    _give_room(session, transaction)


def _give_room(session: Session, transaction: Transaction) -> None:
    for each in transaction.settlements:
        session.broker.observer.settled(session.connection, each.holder.queue_id, each.outcome, [each.uid])
        each.holder.returned(1)
        if isinstance(each.holder, Consumer):
            session.connection.wrote(each.holder)
    share_room(session)


async def rollback(session: Session, _request: v.Rollback) -> None:
    transaction = _current(session)
    session.transaction = Transaction(session.broker.transactions.open)
    transaction.rolled_back()
    for each in transaction.settlements:
        session.unsettled[each.number] = (each.holder, each.uid)
        session.oldest = min(session.oldest, each.number)


def _current(session: Session) -> Transaction:
    if session.transaction is None:
        raise PreconditionFailed("channel is not transactional: tx.select comes first")
    return session.transaction
