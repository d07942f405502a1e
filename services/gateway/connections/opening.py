"""A client that has signed in asks for a virtual host: with that its connection is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from services.common.errors import BrokerError, NotAllowed, NotFound
from services.gateway.connections.heartbeat import Heartbeat
from services.gateway.connections.whose import whose
from services.gateway.sessions.session import Session

if TYPE_CHECKING:
    from services.gateway import vocabulary as v
    from services.gateway.connections.connection import Connection

log = structlog.get_logger()


def open_connection(connection: Connection, request: v.Open) -> None:
    """Answers the client, or refuses it; one that is lost by the end of its login would be counted for ever."""
    if connection.lost:
        return
    try:
        _enter(connection, request.virtual_host)
    except BrokerError as error:
        connection.fail(request, error, logged=isinstance(error, NotAllowed))
    else:
        _begin(connection, request)


def begin_session(connection: Connection, request: v.OpenSession) -> None:
    """Opens a session, unless its user's limit of channels is reached."""
    try:
        connection.listener.limited.begin_session(connection)
    except NotAllowed as error:
        connection.fail(request, error)
    else:
        _open_session(connection, request)


def _open_session(connection: Connection, request: v.OpenSession) -> None:
    """Opens a session under its number; a former one with that number that is still busy, though closed, ends first.

    Answers go by the number: the client would take confirms and errors of the former session for the next one's.
    """
    former = connection.sessions.get(request.session)
    session = connection.sessions[request.session] = Session(request.session, connection)
    if former:
        session.begin(request, former.ended())
    else:
        connection.engine.succeed(request)


def _enter(connection: Connection, name: str) -> None:
    if name not in connection.broker.topology.virtual_hosts:
        raise NotFound(f"vhost {name} not found")  # RabbitMQ's words
    connection.listener.enter(connection, name)
    connection.virtual_host = name


def _begin(connection: Connection, request: v.Open) -> None:
    connection.client = request.client or connection.client
    observer = connection.broker.observer
    connection.record = observer.record_of(connection, connection.engine.name)
    connection.engine.succeed(request)
    connection.timers.pop().cancel()
    connection.take_pending()
    connection.listener.incoming.note(connection, connection.engine.incomplete)  # no stranger any more
    observer.opened(connection)
    log.info("connection opened", **whose(connection))
    if any(connection.engine.idleness):
        Heartbeat(connection).beat()
