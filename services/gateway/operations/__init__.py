"""What each request does: one file per subject, found here by the request's type.

A handler returns None when the request is carried out, or a coroutine whose result answers it; it raises BrokerError.
`Publish` and `Settle` are not answered; the connection answers every other request with what the coroutine gives.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from services.gateway import vocabulary as v
from services.gateway.operations import consume, nodes, publish, settle, topology, transact
from services.gateway.sessions.session import Session

Handler = Callable[[Session, Any], Coroutine[Any, Any, Any] | None]


def _close_session(session: Session, request: v.CloseSession) -> None:
    session.connection.end_session(session, request)


async def _echo(_session: Session, _request: v.Echo) -> None:
    """It is done."""


HANDLERS: dict[type[v.Request], Handler] = {
    v.CloseSession: _close_session,
    v.Publish: publish.publish,
    v.Settle: settle.settle,
    v.Confirms: publish.confirms,
    v.Consume: consume.consume,
    v.Credit: consume.credit,
    v.Cancel: consume.cancel,
    v.Get: consume.get,
    v.Limit: consume.limit,
    v.Flow: consume.flow,
    v.Echo: _echo,
    v.Recover: settle.recover,
    v.FindNode: nodes.find,
    v.DeclareExchange: topology.declare_exchange,
    v.DeleteExchange: topology.delete_exchange,
    v.DeclareQueue: topology.declare_queue,
    v.DeleteQueue: topology.delete_queue,
    v.PurgeQueue: topology.purge_queue,
    v.Bind: topology.bind,
    v.Unbind: topology.unbind,
    v.SelectTransactions: transact.select,
    v.Commit: transact.commit,
    v.Rollback: transact.rollback,
}
