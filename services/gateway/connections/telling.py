"""The open connections, for management: read when asked for, so that they cost nothing per message."""
# ruff: noqa: N802 - the contract names the methods

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from services.common.clock import epoch_ms
from services.common.errors import NotFound
from services.gateway.sessions.inbound_links import OWN
from services.rpc import gateway_pb2 as pb
from services.rpc.gateway_pb2_grpc import GatewayServicer

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection
    from services.gateway.connections.listener import Listener
    from services.gateway.sessions.session import Session

_AT_ONCE = 100  # connections in one turn of the loop, so that messages do not wait for all of them


class Telling(GatewayServicer):
    """Serves hopline.gateway.Gateway; `listener` is None until the gateway listens."""

    def __init__(self) -> None:
        self.listener: Listener | None = None

    async def Connections(self, request: pb.ConnectionsRequest, context: Any) -> AsyncIterator[pb.ConnectionsTold]:  # noqa: ANN401, ARG002 - generic in its stubs only
        if request.name:
            yield told((each for each in self._open() if each.name == request.name), consumers=True)
            return
        left = iter(self._open())
        while portion := list(islice(left, _AT_ONCE)):
            yield told(portion)
            await asyncio.sleep(0)

    async def Close(self, request: pb.CloseRequest, context: Any) -> pb.CloseReply:  # noqa: ANN401, ARG002 - as above
        found = next((each for each in self._open() if each.name == request.name), None)
        if found is None or not found.virtual_host:
            raise NotFound(f"no connection '{request.name}'")
        found.shut_down(request.reason)
        return pb.CloseReply()

    async def ResetLimits(self, request: pb.ResetLimitsRequest, context: Any) -> pb.ResetLimitsReply:  # noqa: ANN401, ARG002 - as above
        if self.listener:
            self.listener.by_rules.reset(request.virtual_host if request.HasField("virtual_host") else None)
        return pb.ResetLimitsReply()

    def _open(self) -> list[Connection]:
        return list(self.listener.connections) if self.listener else []


def told(connections: Iterable[Connection], *, consumers: bool = False) -> pb.ConnectionsTold:
    """Describes the connections that are open; `consumers`: each of those."""
    there = (each for each in connections if each.virtual_host and not each.lost)
    return pb.ConnectionsTold(connections=[_told(each, consumers) for each in there])


def _told(connection: Connection, consumers: bool) -> pb.Connection:
    since = epoch_ms() - int(1000 * connection.loop.time())
    return pb.Connection(
        last_io_ms=since + int(1000 * max(connection.last.read, connection.last.wrote)),
        last_used_ms=since + int(1000 * connection.last.used),
        name=connection.name,
        peer=connection.peer,
        user=connection.user,
        virtual_host=connection.virtual_host,
        client=connection.client,
        port=connection.login.port,
        protocol=connection.engine.name,
        sessions=[_session(connection, each, consumers) for _, each in sorted(connection.sessions.items())],
    )


def _session(connection: Connection, session: Session, consumers: bool) -> pb.Session:
    its = session.consumers.values() if consumers else ()
    return pb.Session(
        number=session.number,
        consumers=len(session.consumers),
        unsettled=len(session.numbers),
        limit=session.limit,
        shared_limit=session.shared_limit,
        confirms=session.inbound.confirmed,
        transaction=bool(session.transactions),
        each=[pb.ConsumerOf(queue_id=consumer.queue_id, tag=consumer.tag) for consumer in its],
        producers=_producers(connection, session),
    )


def _producers(connection: Connection, session: Session) -> Iterator[pb.Producer]:
    """Links that there are, also those that have published nothing yet; of those that have ended nothing is told."""
    for each in connection.engine.producing(session.number):
        messages, size = session.inbound.published_by(each.number).get(each.exchange, (0, 0))
        key = each.routing_key
        yield pb.Producer(name=each.name, exchange=each.exchange, routing_key=key, messages=messages, bytes=size)
    for exchange, (messages, size) in list(session.inbound.published_by(OWN).items()):
        yield pb.Producer(exchange=exchange, messages=messages, bytes=size)
