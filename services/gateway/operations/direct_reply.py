"""Direct reply-to: what each operation does for the pseudo-queue (services/common/topology/direct_reply.py).

Behind it is an exclusive queue with a consumer of the session. Of what the session publishes as requests, the reply-to
becomes the name of that queue. What declares and consumes comes here first, and goes on to what does it for any queue.
"""

from __future__ import annotations

import secrets
from contextlib import suppress

from services.common.errors import BrokerError, NotFound, PreconditionFailed
from services.common.message import format_named
from services.common.topology import direct_reply
from services.common.topology.slots import SlotName
from services.gateway import answers
from services.gateway import vocabulary as v
from services.gateway.operations import topology
from services.gateway.operations.consume import consume as consume_from_queue
from services.gateway.sessions.reply_address import ReplyAddress
from services.gateway.sessions.session import Session
from services.rpc import router_pb2

_TOKEN = 16  # bytes


async def consume(session: Session, request: v.Consume) -> str:
    """From the pseudo-queue: makes a queue, and consumes from that. Raises PreconditionFailed, as RabbitMQ does."""
    if request.queue != direct_reply.PSEUDO_QUEUE:
        return await consume_from_queue(session, request)
    if not request.settled:
        raise PreconditionFailed("reply consumer cannot acknowledge")
    if _address(session):
        raise PreconditionFailed("reply consumer already set")
    connection = session.connection
    name = direct_reply.behind(f"{connection.name}.{session.number}.{secrets.token_urlsafe(_TOKEN)}")
    connection.owns_queues = True
    await topology.change(session, declare_queue=router_pb2.DeclareQueue(name=name, exclusive=True, auto_delete=True))
    request.queue = name
    try:
        tag = await consume_from_queue(session, request)
    except BrokerError:
        await _drop(session, name)
        raise
    if consumer := session.consumers.get(tag):
        session.replies = ReplyAddress(name, consumer)
    return tag


async def _drop(session: Session, name: str) -> None:
    """It never had a consumer: it would not go by itself while its connection is there."""
    with suppress(BrokerError):
        await topology.delete_queue(session, v.DeleteQueue(session.number, name))


def _address(session: Session) -> str:
    """Of its queue; empty where it has no consumer of replies."""
    replies = session.replies
    if replies is None or session.consumers.get(replies.consumer.tag) is not replies.consumer:
        return ""
    return replies.queue


async def declare_queue(session: Session, request: v.DeclareQueue) -> answers.QueueDeclared:
    if request.passive and direct_reply.is_meant(request.name):
        return _look(session, request.name)
    return await topology.declare_queue(session, request)


def _look(session: Session, name: str) -> answers.QueueDeclared:
    """Who answers may ask in this way whether its requester still waits, though the queue is not its own."""
    host = session.connection.virtual_host
    if name != direct_reply.PSEUDO_QUEUE and SlotName(host, name) not in session.broker.topology.by_name:
        raise NotFound(f"no queue '{name}' in vhost '{host}'")
    return answers.QueueDeclared(name, 0, 1)


def fault(session: Session, kind: v.Kind) -> BrokerError | None:
    """Why a request cannot be published."""
    if kind.attributes.direct_reply and not _address(session):
        return PreconditionFailed("fast reply consumer does not exist")
    return None


def rewrite(session: Session, request: v.Publish) -> None:
    """Has requests say where they are answered."""
    address = _address(session)
    request.properties = [
        format_named(kind.facts.format).with_reply_to(properties, address)
        if kind.attributes.direct_reply
        else properties
        for kind, properties in zip(request.kinds, request.properties, strict=True)
    ]
