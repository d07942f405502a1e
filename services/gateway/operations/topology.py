"""Exchanges, queues and bindings: the router decides; the queue's owner counts, purges and deletes."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from services.common.arguments.life import may_end
from services.common.errors import BrokerError, InternalError, NotFound, PreconditionFailed, ResourceLocked
from services.common.message import arguments
from services.common.topology.life import Asker, Party, Scope, of_connection
from services.common.topology.slots import SlotId, SlotName, slot_of
from services.gateway import answers
from services.gateway import vocabulary as v
from services.gateway.operations import choosing
from services.gateway.sessions.session import Session
from services.rpc import queue_pb2, router_pb2

_NOBODYS = (1 << 64) - 1  # the id of no queue


async def declare_exchange(session: Session, request: v.DeclareExchange) -> None:
    declare = router_pb2.DeclareExchange(
        name=request.name,
        type=request.type,
        passive=request.passive,
        durable=request.durable,
        auto_delete=request.auto_delete,
        internal=request.internal,
        arguments=arguments.dump(request.arguments),
    )
    async with session.broker.looking if request.passive else nullcontext():
        await change(session, declare_exchange=declare)


async def delete_exchange(session: Session, request: v.DeleteExchange) -> None:
    await change(session, delete_exchange=router_pb2.DeleteExchange(name=request.name, if_unused=request.if_unused))


async def declare_queue(session: Session, request: v.DeclareQueue) -> answers.QueueDeclared:
    declare = _declaration(session, request)
    async with session.broker.looking if request.passive or _is_there(session, declare.name) else nullcontext():
        reply = await change(session, request.link, declare_queue=declare)
    session.last_queue = reply.queue.name
    if reply.created:
        return answers.QueueDeclared(reply.queue.name, 0, 0)
    queue_id = slot_of(reply.queue)
    counts = await session.broker.asking.ask(queue_id, inspect=queue_pb2.InspectRequest(queue_id=queue_id))
    said = arguments.load(reply.queue.arguments)
    return answers.QueueDeclared(reply.queue.name, counts.message_count, counts.consumer_count, said)


def _declaration(session: Session, request: v.DeclareQueue) -> router_pb2.DeclareQueue:
    # Before it is: if the answer is lost, the queue is there all the same.
    session.owns_queues |= bool(request.lifetime) or may_end(request.arguments)
    session.connection.owns_queues |= request.exclusive or session.owns_queues
    return router_pb2.DeclareQueue(
        name=named(session, request.name) if request.passive else request.name,
        passive=request.passive,
        durable=request.durable,
        exclusive=request.exclusive,
        auto_delete=request.auto_delete,
        arguments=arguments.dump(request.arguments),
        lifetime=request.lifetime,
    )


async def replace_queue(session: Session, request: v.ReplaceQueue) -> answers.QueueReplaced:
    await choosing.check_binding(request.binding, session.broker.compiling)
    replace = router_pb2.ReplaceQueue(
        queue=_declaration(session, request.queue), bind=_binding(session, request.binding)
    )
    reply = await change(session, request.link, replace_queue=replace)
    return answers.QueueReplaced(reply.queue.id, reply.created)


def _is_there(session: Session, name: str) -> bool:
    return SlotName(session.connection.virtual_host, name) in session.broker.topology.by_name


async def delete_queue(session: Session, request: v.DeleteQueue) -> int:
    try:
        definition = await find_queue(session, request.name)
    except NotFound:
        await _until_all_hear(session)
        return 0  # deleting what is gone is what the client wants (RabbitMQ since 3.2)
    queue_id = slot_of(definition)
    delete = queue_pb2.DeleteRequest(queue_id=queue_id, if_unused=request.if_unused, if_empty=request.if_empty)
    reply = await session.broker.asking.ask(queue_id, delete=delete)
    if reply.reason == queue_pb2.UNKNOWN_QUEUE:
        await _until_all_hear(session)
    elif reply.reason != queue_pb2.NONE:
        raise _refusal(reply, definition)
    return int(reply.message_count)


async def _until_all_hear(session: Session) -> None:
    """Returns when every gateway has heard what this one has: what is gone for its client is gone everywhere."""
    await change(session, delete_queue=router_pb2.DeleteQueue(queue_id=_NOBODYS))


async def delete_unused(session: Session, queue_id: SlotId) -> None:
    """One that was a consumer's; not where somebody else has it by now."""
    delete = queue_pb2.DeleteRequest(queue_id=queue_id, if_unused=True)
    reply = await session.broker.asking.ask(queue_id, delete=delete)
    if reply.reason == queue_pb2.UNKNOWN_QUEUE:
        await _until_all_hear(session)
    elif reply.reason not in (queue_pb2.NONE, queue_pb2.IN_USE):
        raise InternalError(reply.text or "the queue could not be deleted")


async def purge_queue(session: Session, request: v.PurgeQueue) -> int:
    definition = await find_queue(session, request.name)
    queue_id = slot_of(definition)
    purge = queue_pb2.PurgeRequest(queue_id=queue_id)
    reply = await session.broker.asking.ask(queue_id, purge=purge)
    if reply.reason != queue_pb2.NONE:
        raise _refusal(reply, definition)
    return int(reply.message_count)


async def bind(session: Session, request: v.Bind) -> None:
    await choosing.check_binding(request, session.broker.compiling)
    await change(session, bind=_binding(session, request))


async def unbind(session: Session, request: v.Unbind) -> None:
    await change(session, unbind=_binding(session, request))


async def find_binding(session: Session, request: v.FindBinding) -> answers.BindingFound:
    """Of the router, which alone knows bindings."""
    asked = router_pb2.FindBindingRequest(
        virtual_host=session.connection.virtual_host,
        exchange=request.exchange,
        routing_key=request.routing_key,
        queue=request.queue,
    )
    async with session.broker.looking:
        found = await session.broker.topology.find_binding(asked)
    return answers.BindingFound(found.unknown_exchange, found.unknown_queue, found.is_bound)


async def change(session: Session, link: int = 0, **what: Any) -> router_pb2.ChangeReply:  # noqa: ANN401 - of the oneof
    """Has the router change the topology, for a link of the session; returns when every gateway routes by it."""
    its, whose = session.connection, asker(session)._replace(link=str(link or ""))
    return await session.broker.topology.change(
        router_pb2.ChangeRequest(virtual_host=its.virtual_host, **whose._asdict(), **what)
    )


def asker(session: Session) -> Asker:
    """Who the session is, by all that a queue may belong to."""
    connection = session.connection
    return Asker(connection.name, session.identity, connection.client, connection.user)


async def find_queue(session: Session, name: str) -> router_pb2.QueueDefinition:
    """The queue that the session means; raises NotFound, and ResourceLocked when it is another connection's own."""
    await session.broker.topology_known()
    name = named(session, name)
    virtual_host = session.connection.virtual_host
    definition = session.broker.topology.by_name.get(SlotName(virtual_host, name))
    if definition is None:
        raise NotFound(f"no queue '{name}' in vhost '{virtual_host}'")
    if not asker(session).may_use(owner_of(definition)):
        raise ResourceLocked(
            f"cannot obtain exclusive access to locked queue '{name}' in vhost '{virtual_host}'. It could be originally"
            " declared on another connection or the exclusive property value does not match that of the original"
            " declaration."
        )
    return definition


def owner_of(definition: router_pb2.QueueDefinition) -> Party:
    """The only party that may use it, if any."""
    if definition.HasField("owner"):
        return Party(Scope(definition.owner.scope), definition.owner.name)
    return of_connection(definition.exclusive_to)


async def end_session(session: Session) -> None:
    """Deletes the queues that go with it; if no router answers, as soon as one does."""
    await session.broker.exclusive.end(Asker(session.connection.name, session.identity))


async def close_link(session: Session, request: v.CloseLink) -> None:
    """The same of a link."""
    await session.broker.exclusive.end(Asker(session.connection.name, session.identity, link=str(request.link)))


def named(session: Session, name: str) -> str:
    """The queue's name; "" means the session's last declared one (AMQP 0-9-1, queue.bind.queue)."""
    if name:
        return name
    if not session.last_queue:
        raise NotFound("no previously declared queue")
    return session.last_queue


def _binding(session: Session, request: v.Bind | v.Unbind) -> router_pb2.Bind:
    return router_pb2.Bind(
        source=request.source,
        destination=request.destination if request.to_exchange else named(session, request.destination),
        to_exchange=request.to_exchange,
        routing_key=routing_key(session, request),
        arguments=arguments.dump(request.arguments),
    )


def routing_key(session: Session, request: v.Bind | v.Unbind) -> str:
    """That of the binding which is meant."""
    # Section 1.7.2.3: without a name the last declared queue is meant; without a key too, its name is the key.
    if not request.to_exchange and not request.destination and not request.routing_key:
        return session.last_queue
    return request.routing_key


def _refusal(reply: queue_pb2.QueueReply, definition: router_pb2.QueueDefinition) -> BrokerError:
    where = f"queue '{definition.name}' in vhost '{definition.virtual_host}'"
    kinds: dict[int, tuple[type[BrokerError], str]] = {
        queue_pb2.IN_USE: (PreconditionFailed, f"{where} in use"),
        queue_pb2.NOT_EMPTY: (PreconditionFailed, f"{where} not empty"),
        queue_pb2.UNKNOWN_QUEUE: (NotFound, f"no {where}"),
    }
    kind, text = kinds.get(reply.reason, (InternalError, reply.text or f"{where}: refused"))
    return kind(text)
