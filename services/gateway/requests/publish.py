"""Publishing: authorise and route from memory, hand the run over, confirm or return what comes of it."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from services.common.clients.outbound import Refused, Run
from services.common.errors import BrokerError, PreconditionFailed
from services.common.ledger import stages
from services.common.message import format_named
from services.common.message.weight import weight
from services.gateway import vocabulary as v
from services.gateway.routes import Route
from services.gateway.session import Session
from services.gateway.tracing.publishing import Asked, Reception, TracedTicket
from services.gateway.transaction import Publication
from services.rpc import queue_pb2

_UNREADY = frozenset({int(queue_pb2.NO_CONSUMERS)})
_FULL = frozenset({int(queue_pb2.OVERFLOW), int(queue_pb2.OTHER)})


async def confirms(session: Session, _request: v.Confirms) -> None:
    if session.transaction:
        raise PreconditionFailed("cannot switch from tx to confirm mode")
    session.start_confirms()


def publish(session: Session, request: v.Publish) -> Coroutine[Any, Any, None] | None:
    try:
        _check(session, request)
    except PreconditionFailed as error:
        _failed(session, request, error)
        raise
    return _publish_each(session, request) if request.attributes.copied else _route(session, request)


async def _publish_each(session: Session, request: v.Publish) -> None:
    """Those of a run that seem to have more keys than one, in their order: with keys of their own they part."""
    for first, end in _alike(request.properties):
        part = _part(request, first, end)
        try:
            part.more_keys, told = format_named(part.format).more_keys(part.properties[0])
        except BrokerError as error:
            _failed(session, part, error)
            raise
        part.properties = [told] * (end - first)
        if asking := _route(session, part):
            await asking


def _alike(properties: list[bytes]) -> Iterator[tuple[int, int]]:
    """Ranges of messages with equal properties."""
    first = 0
    for _, group in groupby(properties):
        end = first + len(list(group))
        yield first, end
        first = end


def _route(session: Session, request: v.Publish) -> Coroutine[Any, Any, None] | None:
    route = session.broker.routes.find(session.connection.virtual_host, request)
    if route is None:
        return _ask_and_publish(session, request)
    _publish(session, request, route)
    return None


def _check(session: Session, request: v.Publish) -> None:
    attributes = request.attributes
    user = session.connection.user
    if attributes.user_id is not None and attributes.user_id != user:
        raise PreconditionFailed(f"user_id property set to '{attributes.user_id}' but authenticated user was '{user}'")
    if attributes.direct_reply:
        _rewrite_replies(session, request)


async def _ask_and_publish(session: Session, request: v.Publish) -> None:
    asked = session.broker.publishing.ask(request)
    metadata = asked.metadata if asked else ()
    try:
        route = await session.broker.routes.ask(session.connection.virtual_host, request, metadata)
    except BrokerError as error:
        _failed(session, request, error)
        if asked:
            session.broker.publishing.refused(session, request, asked, error)
        raise
    if asked:
        asked.answered()
    _publish(session, request, route, asked)


def _failed(session: Session, request: v.Publish, error: BrokerError) -> None:
    record = session.connection.record
    if record.on:
        record.failed(request, session.broker.publisher.uids.take(len(request.bodies)), error)


def _publish(session: Session, request: v.Publish, route: Route, asked: Asked | None = None) -> None:
    if route.by_properties is None:
        _publish_run(session, request, route.queue_ids, asked)
        return
    queues = [route.by_properties[properties] for properties in request.properties]
    for queue_ids, group in groupby(range(len(queues)), queues.__getitem__):
        indexes = list(group)
        part = _part(request, indexes[0], indexes[-1] + 1)
        _publish_run(session, part, queue_ids, None if indexes[0] else asked)


def _publish_run(session: Session, request: v.Publish, queue_ids: tuple[int, ...], asked: Asked | None) -> None:
    attributes, publishing = request.attributes, session.broker.publishing
    run = Run(
        session.connection.virtual_host,
        request.exchange,
        request.routing_key,
        queue_ids,
        request.format,
        attributes.persistent,
        attributes.priority,
        attributes.ttl_ms,
        request.immediate,
        request.properties,
        request.bodies,
        weight(request.properties, request.bodies),
    )
    uids = session.broker.publisher.uids.take(len(run.bodies))
    record = session.connection.record
    if record.on:
        record.received(request, uids, run.size)
        record.routed(request, uids, queue_ids)
    traced = publishing.begin(session, request, run, uids, asked) if publishing.concerns(request) else None
    if session.transaction:
        session.transaction.add(Publication(request, run, uids, traced))
    elif queue_ids:
        _send(session, request, run, uids, traced)
    else:
        if traced:
            traced.unroutable(returned=request.mandatory)
        _give_up(session, request, uids)
    if session.broker.unwritable.now and attributes.persistent:
        session.broker.unwritable.published(session.connection, queue_ids)


def _send(session: Session, request: v.Publish, run: Run, uids: range, traced: Reception | None) -> None:
    first = session.confirms.number(len(uids)) if session.confirms else 0
    ticket = PublishTicket(session, request, uids, first, len(run.queue_ids)) if first or request.immediate else None
    pressure = session.broker.publisher.publish(run, uids, TracedTicket(traced, ticket) if traced else ticket)
    if pressure:
        session.connection.congested(pressure)


def _give_up(session: Session, request: v.Publish, uids: range) -> None:
    """No queue is to have it."""
    count, record = len(uids), session.connection.record
    if request.mandatory:
        session.send_back(v.Returned(request, 0, count))
        record.returned(request, uids)
    else:
        record.unroutable(request, uids)
    if session.confirms and session.confirm(session.confirms.number(count), count):
        record.confirmed(request, uids)


@dataclass(slots=True)
class PublishTicket:
    """Waits for a run on behalf of its publisher."""

    session: Session
    request: v.Publish
    uids: range
    first: int  # confirm number of the first message, 0 without confirms
    queues: int

    def settled(self, refusals: list[Refused]) -> None:
        session, request, record = self.session, self.request, self.session.connection.record
        count = len(request.bodies)
        refused: list[tuple[int, int]] = []
        try:
            if refusals:
                for first, many in _refused(refusals, count, _UNREADY, self.queues):
                    session.send_back(v.Returned(request, first, many, no_consumers=True))
                    record.returned(request, self.uids[first : first + many], stages.NO_CONSUMERS)
                refused = _refused(refusals, count, _FULL, 1)
            if session.confirm(self.first, count, refused) and record.on:
                self._record(refused)
        except Exception as fault:  # noqa: BLE001 - this publisher's, whatever it is
            session.connection.fault("telling a publisher what became of its messages", fault)

    def _record(self, refused: list[tuple[int, int]]) -> None:
        """What the publisher hears now."""
        record, at = self.session.connection.record, 0
        for first, many in [*refused, (len(self.uids), 0)]:
            if first > at:
                record.confirmed(self.request, self.uids[at:first])
            if many:
                record.refused(self.request, self.uids[first : first + many], stages.OVERFLOW)
            at = first + many


def _refused(refusals: list[Refused], count: int, reasons: frozenset[int], queues: int) -> list[tuple[int, int]]:
    """Messages that at least so many queues refused for one of the reasons, as ascending ranges (first, count)."""
    times = [0] * count
    for first, many, _, reason in refusals:
        if reason in reasons:
            times[first : first + many] = [each + 1 for each in times[first : first + many]]
    ranges = []
    for is_refused, group in groupby(range(count), lambda index: times[index] >= queues):
        indexes = list(group)
        if is_refused:
            ranges.append((indexes[0], len(indexes)))
    return ranges


def _part(request: v.Publish, first: int, end: int) -> v.Publish:
    return v.Publish(
        request.session,
        request.exchange,
        request.routing_key,
        request.mandatory,
        request.immediate,
        request.format,
        request.attributes,
        request.properties[first:end],
        request.bodies[first:end],
    )


def _rewrite_replies(session: Session, request: v.Publish) -> None:
    """Direct reply-to: the pseudo-queue becomes the address of the queue behind it."""
    if not session.reply_queue:
        raise PreconditionFailed("fast reply consumer does not exist")
    message_format = format_named(request.format)
    request.properties = [
        message_format.with_reply_to(properties, session.reply_queue) for properties in request.properties
    ]
