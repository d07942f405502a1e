"""Consumers and single gets; AMQP 0-9-1 sections 1.8.3.1 (qos) to 1.8.3.12 (get), and RabbitMQ's consumer arguments."""

from __future__ import annotations

from collections.abc import Sequence

from services.common.arguments.costly import selectors_in
from services.common.errors import AccessRefused, LinkStolen, NotAllowed, NotFound, PreconditionFailed
from services.common.message import columns
from services.common.message.facts import Facts
from services.common.topology.life import ANY_LINK
from services.common.topology.slots import SlotId, slot_of
from services.gateway import answers
from services.gateway import vocabulary as v
from services.gateway.operations import choosing
from services.gateway.operations.topology import change, delete_unused, find_queue, owner_of
from services.gateway.sessions.consumer import WINDOW_BYTES, Consumer, GetHolder
from services.gateway.sessions.credit import CreditMode, LinkCredit, Prefetch, window_of
from services.gateway.sessions.management import Management
from services.gateway.sessions.session import Session
from services.rpc import queue_pb2, router_pb2

_LEAST_WINDOW = 64 << 10

Columns = tuple[Sequence[Facts], Sequence[bytes], Sequence[bytes]]


async def consume(session: Session, request: v.Consume) -> str:
    if not request.tag:
        request.tag = session.new_tag()
    if request.tag in session.consumers:
        raise NotAllowed(f"attempt to reuse consumer tag '{request.tag}'")
    if request.queue == v.MANAGEMENT and session.broker.management:
        return await _consume_answers(session, request, session.broker.management)
    definition = await find_queue(session, request.queue)
    if request.queue_id not in (0, definition.id):
        raise LinkStolen("the link is attached again, from another source")
    selector = await choosing.selector_of(request, session.broker.compiling)
    kept = await session.broker.compiling.kept(selectors_in(definition.arguments))
    consumer = _consumer(session, request, definition, selector)
    del kept
    if consumer.no_local:
        _keep_own(session, consumer, alone=request.alone)
    session.consumers[request.tag] = consumer
    session.broker.add(consumer)
    try:
        await session.broker.attach(consumer)
    except BaseException:
        session.consumers.pop(request.tag, None)
        session.broker.abandon(consumer)
        raise
    return request.tag


def _keep_own(session: Session, consumer: Consumer, *, alone: bool) -> None:
    """Before it is attached: what is published from now on is not for it."""
    connection = session.connection
    if alone:  # in its queue that would wait for ever
        connection.spares |= {consumer.queue_id}
    else:
        connection.tells_publisher = True


def _consumer(session: Session, request: v.Consume, definition: router_pb2.QueueDefinition, selector: str) -> Consumer:
    on_connection = sum(len(each.consumers) for each in session.connection.sessions.values()) + 1
    window = max(min(WINDOW_BYTES // on_connection, session.broker.window), _LEAST_WINDOW)
    return Consumer(
        handle=session.broker.new_handle(),
        session=session,
        tag=request.tag,
        queue_id=slot_of(definition),
        settled=request.settled,
        exclusive=request.exclusive or owner_of(definition) == ANY_LINK,
        browse=choosing.browses(request),
        selector=selector,
        steals=request.steals,
        no_local=choosing.no_local(request, definition.arguments),
        replay=choosing.replay_of(request, definition.arguments),
        priority=_priority(request.arguments.get("x-priority", 0)),
        credit=_credit_mode(session, request, window),
        window=window,
        place=session.connection.record.consumer(slot_of(definition), request.tag),
    )


def _credit_mode(session: Session, request: v.Consume, window: int) -> CreditMode:
    """What is settled when it is sent is limited by no number of unsettled deliveries."""
    if request.by_credit:
        return LinkCredit()
    return Prefetch(session.limit) if session.limit and not request.settled else window_of(window)


def _priority(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) <= value < 2**31:
        raise PreconditionFailed(f"x-priority must be an integer of 32 bits, not {value!r}")
    return value


async def _consume_answers(session: Session, request: v.Consume, management: Management) -> str:
    """Of the management node: what it replies to requests of this connection that name the consumer."""
    session.connection.owns_queues = True
    reply = await change(session, declare_queue=router_pb2.DeclareQueue(exclusive=True, auto_delete=True))
    request.queue = reply.queue.name
    tag = await consume(session, request)
    management.expect(session.connection, request.replies_to or tag, request.queue, session.consumers[tag])
    return tag


async def cancel(session: Session, request: v.Cancel) -> str:
    consumer = session.consumers.get(request.tag)
    if consumer is None:
        return request.tag
    await session.broker.detach(consumer)
    session.end(consumer)
    if request.deletes and not consumer.stolen:
        await delete_unused(session, consumer.queue_id)
    return request.tag


async def get(session: Session, request: v.Get) -> answers.Got | None:
    """Of all sessions a few at a time: those that wait see whether the socket took the answers of those before."""
    async with session.connection.gets:
        await session.connection.drained()
        return await _get(session, request)


async def _get(session: Session, request: v.Get) -> answers.Got | None:
    definition = await find_queue(session, request.queue)
    queue_id = slot_of(definition)
    asked = queue_pb2.GetRequest(queue_id=queue_id, settled=request.settled)
    reply = await session.broker.asking.ask(queue_id, to_hold=not request.settled, get=asked)
    if reply.reason == queue_pb2.EXCLUSIVE_USE:
        raise AccessRefused(f"queue '{definition.name}' in vhost '{definition.virtual_host}' in exclusive use")
    if reply.reason != queue_pb2.NONE:
        raise NotFound(f"no queue '{definition.name}' in vhost '{definition.virtual_host}'")
    batch = reply.message
    if not batch.bodies:
        return None
    run = batch.runs[0]
    if request.settled:
        number = session.numbers.skip(1)
    else:
        holders = session.get_holders
        holder = holders.setdefault(queue_id, GetHolder(queue_id, others=holders))
        holder.link = session.broker.publisher.link_of(queue_id)
        holder.count += 1
        number = session.numbers.add(holder, batch.uids[:1])
    (facts,), (properties,) = columns.facts_in(batch), columns.properties_in(batch)
    _tell(session, queue_id, batch, ([facts], [properties], list(batch.bodies)), number, settled=request.settled)
    body, left = batch.bodies[0], reply.message_count
    return answers.Got(number, run.redelivered, facts, properties, body, left, run.attempts, run.acquired)


def _tell(
    session: Session, queue_id: SlotId, batch: queue_pb2.DeliveryBatch, those: Columns, number: int, *, settled: bool
) -> None:
    """What was taken without a consumer is sent."""
    observer, record = session.broker.observer, session.connection.record
    for traced in batch.traced:
        observer.arrived(traced, queue_id)
    place = record.consumer(queue_id, "")
    observer.sent(session.connection, record, place, queue_id, list(batch.uids), those, number, settled=settled)


async def limit(session: Session, request: v.Limit) -> None:
    if request.shared:
        session.shared_limit = request.messages
        for consumer in session.consumers.values():
            consumer.resize()
            session.connection.wrote(consumer)
    else:
        session.limit = request.messages


def credit(session: Session, request: v.Credit) -> None:
    """Others are not kept waiting by a drain, which may take its time."""
    if consumer := session.consumers.get(request.tag):
        consumer.give(request)
        session.connection.wrote(consumer)
    elif request.drain:
        session.answer(request)


async def flow(session: Session, request: v.Flow) -> None:
    _flow(session, active=request.active)


def room(session: Session, request: v.Room) -> None:
    _flow(session, active=request.there_is)


def _flow(session: Session, *, active: bool) -> None:
    session.flowing = active
    if session.flowing:
        session.connection.wants_to_write(session)
