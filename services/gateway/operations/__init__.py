"""What each request does: one file per subject, found here by the request's type.

Whatever an engine asks for goes through `carry_out`, once, when it is its turn in its session. What was published in
one read is one request.

A handler returns None when the request is carried out, or a coroutine whose result answers it; it raises BrokerError.
`Publish` and `Settle` are not answered; a session answers every other request of its own with what the coroutine gives.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from services.gateway import vocabulary as v
from services.gateway.operations import connections, consume, nodes, publish, settle, topology, transact
from services.gateway.operations.connections import Client
from services.gateway.sessions.session import Session

Handler = Callable[[Any, Any], Coroutine[Any, Any, Any] | None]


@dataclass(frozen=True, slots=True)
class Operation:
    """A row of the table below. The action and the resource that a user needs are declared here, one row a request."""

    handler: Handler
    of_connection: bool = False
    """Whether it is asked of the connection, not of one of its sessions, and answered by itself."""


def _close_session(session: Session, request: v.CloseSession) -> None:
    session.connection.end_session(session, request)


async def _echo(_session: Session, _request: v.Echo) -> None:
    """It is done."""


OPERATIONS: dict[type[v.Request], Operation] = {
    v.Authenticate: Operation(connections.authenticate, of_connection=True),
    v.UpdateSecret: Operation(connections.update_secret, of_connection=True),
    v.Open: Operation(connections.open_connection, of_connection=True),
    v.OpenSession: Operation(connections.open_session, of_connection=True),
    v.Close: Operation(connections.close, of_connection=True),
    v.CloseSession: Operation(_close_session),
    v.Publish: Operation(publish.publish),
    v.Settle: Operation(settle.settle),
    v.Confirms: Operation(publish.confirms),
    v.Consume: Operation(consume.consume),
    v.Credit: Operation(consume.credit),
    v.Cancel: Operation(consume.cancel),
    v.Get: Operation(consume.get),
    v.Limit: Operation(consume.limit),
    v.Flow: Operation(consume.flow),
    v.Echo: Operation(_echo),
    v.Recover: Operation(settle.recover),
    v.FindNode: Operation(nodes.find),
    v.DeclareExchange: Operation(topology.declare_exchange),
    v.DeleteExchange: Operation(topology.delete_exchange),
    v.DeclareQueue: Operation(topology.declare_queue),
    v.DeleteQueue: Operation(topology.delete_queue),
    v.PurgeQueue: Operation(topology.purge_queue),
    v.Bind: Operation(topology.bind),
    v.Unbind: Operation(topology.unbind),
    v.FindBinding: Operation(topology.find_binding),
    v.SelectTransactions: Operation(transact.select),
    v.Commit: Operation(transact.commit),
    v.Rollback: Operation(transact.rollback),
}


def carry_out(asker: Session | Client, request: v.Request) -> Coroutine[Any, Any, Any] | None:
    """Does what was asked. Whether the user may is to be asked here: nothing is done for a client but by this."""
    return OPERATIONS[type(request)].handler(asker, request)
