"""What each request does: one file per subject, found here by the request's type.

Whatever an engine asks for goes through `carry_out`, once, when it is its turn in its session. What a session published
in one read is one request.

A handler returns None when the request is carried out, or a coroutine whose result answers it; it raises BrokerError.
`Publish` and `Settle` are not answered; a session answers every other request of its own with what the coroutine gives.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from services.common.errors import BrokerError
from services.gateway import vocabulary as v
from services.gateway.answers import ANSWERED
from services.gateway.operations import (
    connections,
    consume,
    direct_reply,
    needs,
    nodes,
    publish,
    settle,
    topology,
    transact,
)
from services.gateway.operations.connections import Client
from services.gateway.operations.needs import Needs
from services.gateway.sessions.session import Session

Handler = Callable[[Any, Any], Coroutine[Any, Any, Any] | None]


@dataclass(frozen=True, slots=True)
class Operation:
    """A row of the table below: what does it, and the action and the object that its user has to be allowed."""

    handler: Handler
    needs: Needs
    of_connection: bool = False
    """Whether it is asked of the connection, not of one of its sessions, and answered by itself."""


def _close_session(session: Session, request: v.CloseSession) -> Coroutine[Any, Any, object] | None:
    if session.owns_queues:
        return _end_session(session, request)
    session.connection.end_session(session, request)
    return None


async def _end_session(session: Session, request: v.CloseSession) -> object:
    """Its queues are gone when that is answered."""
    session.write_confirms()
    session.close()
    await topology.end_session(session)
    session.connection.end_session(session, request)
    return ANSWERED


async def _echo(_session: Session, _request: v.Echo) -> None:
    """It is done."""


OPERATIONS: dict[type[v.Request], Operation] = {
    v.Authenticate: Operation(connections.authenticate, needs.nothing, of_connection=True),
    v.UpdateSecret: Operation(connections.update_secret, needs.nothing, of_connection=True),
    v.Open: Operation(connections.open_connection, needs.open_virtual_host, of_connection=True),
    v.OpenSession: Operation(connections.open_session, needs.nothing, of_connection=True),
    v.Close: Operation(connections.close, needs.nothing, of_connection=True),
    v.EndSessions: Operation(connections.end_sessions, needs.nothing, of_connection=True),
    v.DropQueue: Operation(connections.drop_queue, needs.nothing, of_connection=True),
    v.CloseSession: Operation(_close_session, needs.nothing),
    v.Publish: Operation(publish.publish, needs.each_message),
    v.Settle: Operation(settle.settle, needs.nothing),
    v.SelectConfirms: Operation(publish.select_confirms, needs.nothing),
    v.Consume: Operation(direct_reply.consume, needs.consume),
    v.Credit: Operation(consume.credit, needs.nothing),
    v.Cancel: Operation(consume.cancel, needs.cancel),
    v.Get: Operation(consume.get, needs.get),
    v.Limit: Operation(consume.limit, needs.nothing),
    v.Flow: Operation(consume.flow, needs.nothing),
    v.Room: Operation(consume.room, needs.nothing),
    v.Echo: Operation(_echo, needs.nothing),
    v.Recover: Operation(settle.recover, needs.nothing),
    v.FindNode: Operation(nodes.find, needs.find_node),
    v.Produce: Operation(nodes.produce, needs.produce),
    v.EndProduce: Operation(nodes.end_produce, needs.nothing),
    v.DeclareExchange: Operation(topology.declare_exchange, needs.declare_exchange),
    v.DeleteExchange: Operation(topology.delete_exchange, needs.delete_exchange),
    v.DeclareQueue: Operation(direct_reply.declare_queue, needs.declare_queue),
    v.CloseLink: Operation(topology.close_link, needs.nothing),
    v.ReplaceQueue: Operation(topology.replace_queue, needs.replace_queue),
    v.DeleteQueue: Operation(topology.delete_queue, needs.delete_queue),
    v.PurgeQueue: Operation(topology.purge_queue, needs.purge_queue),
    v.Bind: Operation(topology.bind, needs.bind),
    v.Unbind: Operation(topology.unbind, needs.unbind),
    v.FindBinding: Operation(topology.find_binding, needs.find_binding),
    v.SelectTransactions: Operation(transact.select, needs.nothing),
    v.DeclareTransaction: Operation(transact.declare, needs.nothing),
    v.Commit: Operation(transact.commit, needs.nothing),
    v.Rollback: Operation(transact.rollback, needs.nothing),
}


def carry_out(asker: Session | Client, request: v.Request) -> Coroutine[Any, Any, Any] | None:
    """Does what was asked, where the user may: nothing is done for a client but by this. Raises BrokerError."""
    operation = OPERATIONS[type(request)]
    operation.needs(asker, request)
    return operation.handler(asker, request)


def carry_out_of_connection(client: Client, request: v.Request) -> None:
    """The same of what is asked of the connection itself, which answers by itself."""
    try:
        carry_out(client, request)
    except BrokerError as error:
        client.fail(request, error)
