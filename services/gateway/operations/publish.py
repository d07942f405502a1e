"""Publishing: authorise and route from memory, hand all of one read over together, confirm or return what comes."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NoReturn

from services.common.clients.outbound import Messages, Targets
from services.common.clients.pressure import pressure_on
from services.common.errors import BrokerError, InternalError, NotFound, PreconditionFailed, SyntaxFault, Unavailable
from services.common.message import format_named
from services.common.message.alike import objects
from services.common.message.facts import Attributes
from services.gateway import answers
from services.gateway import vocabulary as v
from services.gateway.observe.tracing.publishing import Asked
from services.gateway.operations import direct_reply, own
from services.gateway.outcomes import ACCEPTED, Rejected, Released
from services.gateway.routing.routes import distinct
from services.gateway.sessions.publish_ticket import PublishTicket
from services.gateway.sessions.session import Session
from services.gateway.sessions.transaction import Publication, Transaction

_PORTION = 50  # parts of a request
_FACTS, _ATTRIBUTES, _IMMEDIATE = map(attrgetter, ("facts", "attributes", "immediate"))
_EXCHANGE = attrgetter("exchange")

Work = Coroutine[Any, Any, None] | None
"""What there is to wait for, if anything."""


async def select_confirms(session: Session, request: v.SelectConfirms) -> None:
    if session.transactions.selected:
        raise PreconditionFailed("cannot switch from tx to confirm mode")
    session.inbound.begin(request.link, settled=False)


def publish(session: Session, request: v.Publish) -> Work:
    kinds = distinct(request.kinds)
    plain = not any(map(_special, _said(kinds)))
    if plain and _may_all(session, kinds):
        return _route(session, request, kinds)
    fault = _fault(session, kinds[0])
    if plain and not fault and _may_all(session, kinds):  # of its exchange no more has to be asked
        return _route(session, request, kinds)
    faults = {kinds[0]: fault} if fault else {}
    faults |= {kind: error for kind in kinds[1:] if (error := _fault(session, kind))}
    if faults:
        return _past_faults(session, request, faults)
    return _publish_checked(session, request, kinds)


def _may_all(session: Session, kinds: Iterable[v.Kind]) -> bool:
    """Whether the user may publish to their exchanges, whatever the keys."""
    return set(map(_EXCHANGE, map(_FACTS, kinds))) <= session.permitted.writable


def _said(kinds: Iterable[v.Kind]) -> Collection[Attributes]:
    """What their properties say, each once: that is mostly one object, however many keys there are."""
    return objects(list(map(_ATTRIBUTES, kinds))).values()


def _special(said: Attributes) -> bool:
    """Whether more is to be done for such messages than to route them."""
    return said.user_id is not None or said.direct_reply or said.delay_ms is not None or said.copied


def _publish_checked(session: Session, request: v.Publish, kinds: Sequence[v.Kind]) -> Work:
    if any(kind.attributes.direct_reply for kind in kinds):
        direct_reply.rewrite(session, request)
    if any(kind.attributes.delay_ms is not None for kind in kinds):
        _date(request, kinds, session.broker.publisher.now())
    if any(kind.attributes.copied for kind in kinds):
        return _publish_each(session, request)
    return _route(session, request)


def _date(request: v.Publish, kinds: Sequence[v.Kind], now: int) -> None:
    """A delay becomes a moment, which stays where it is when the message is sent again or moves."""
    dated = {id(kind): _dated(kind, now) for kind in kinds}
    request.kinds = [dated[id(kind)] for kind in request.kinds]


def _dated(kind: v.Kind, now: int) -> v.Kind:
    delay_ms, facts = kind.attributes.delay_ms, kind.facts
    if delay_ms is None or facts.not_before is not None:
        return kind
    return kind._replace(facts=facts._replace(not_before=now + delay_ms))


def _fault(session: Session, kind: v.Kind) -> BrokerError | None:
    """Why such a message ends its session."""
    if error := _refusal(session, kind.facts.exchange, kind.facts.routing_key):
        return error
    user, claimed = session.connection.user, kind.attributes.user_id
    if claimed is not None and claimed != user:
        return PreconditionFailed(f"user_id property set to '{claimed}' but authenticated user was '{user}'")
    return direct_reply.fault(session, kind)


def _refusal(session: Session, exchange: str, routing_key: str) -> BrokerError | None:
    """Why the user may not publish that, as rules are now."""
    permitted = session.permitted
    if exchange in permitted.writable:
        return None
    return permitted.refusal_to_publish(session.connection.virtual_host, exchange, routing_key)


def _past_faults(
    session: Session, request: v.Publish, faults: Mapping[v.Kind, BrokerError]
) -> Coroutine[Any, Any, None]:
    """Publishes the others where each has an outcome of its own, else those before the first that is wrong."""
    return (_publish_others if request.link else _publish_until)(session, request, faults)


async def _publish_others(session: Session, request: v.Publish, faults: Mapping[v.Kind, BrokerError]) -> None:
    """In their order, those that are wrong refused where they stand."""
    for at, (fault, indexes) in enumerate(_by_fault(request, faults), 1):
        if not at % _PORTION:
            await asyncio.sleep(0)
        part = request.part(indexes)
        if fault:
            _refuse(session, part, fault)
        elif asking := _publish_checked(session, part, distinct(part.kinds)):
            await asking


def _by_fault(request: v.Publish, faults: Mapping[v.Kind, BrokerError]) -> Iterator[tuple[BrokerError | None, range]]:
    first = 0
    for fault, group in groupby(map(faults.get, request.kinds)):
        end = first + len(list(group))
        yield fault, range(first, end)
        first = end


def _refuse(session: Session, request: v.Publish, error: BrokerError) -> None:
    """Says why. What could not be done at the time says nothing against the messages."""
    count = len(request.bodies)
    record = session.connection.record
    if record.on:
        record.received(request, session.broker.publisher.uids.take(count)).failed(error)
    if transaction := session.transactions.of(request.transaction):
        transaction.fault = error
    if request.first:
        outcome = Released(error) if isinstance(error, Unavailable) else Rejected(error)
        session.confirm(request.link, request.first, range(count), outcome)


async def _publish_until(session: Session, request: v.Publish, faults: Mapping[v.Kind, BrokerError]) -> NoReturn:
    """What came before the first message that ends its session is published; what came behind it is not looked at."""
    first = next(index for index, kind in enumerate(request.kinds) if kind in faults)
    if first:
        before = request.part(range(first))
        if asking := _publish_checked(session, before, distinct(before.kinds)):
            await asking
    fault = request.kinds[first]
    alike = next((at for at in range(first, len(request.kinds)) if request.kinds[at] is not fault), len(request.kinds))
    _fail(session, request.part(range(first, alike)), faults[fault])


async def _publish_each(session: Session, request: v.Publish) -> None:
    """Those that seem to have more keys than one part from the others, in their order: with keys of their own."""
    for number, (kind, indexes) in enumerate(_apart(request), 1):
        if not number % _PORTION:
            await asyncio.sleep(0)  # a read can hold thousands of parts, and others have their turn
        part = request.part(indexes)
        if kind:
            message_format = format_named(kind.facts.format)
            try:
                more_keys, told = message_format.more_keys(part.properties[0])
            except BrokerError as error:
                _fail(session, part, error)
            refusals = (_refusal(session, kind.facts.exchange, key) for key in more_keys)
            if refused := next(filter(None, refusals), None):
                _fail(session, part, refused)
            part.kinds = [kind._replace(more_keys=more_keys)] * len(indexes)
            part.properties = [told] * len(indexes)
        if asking := _route(session, part):
            await asking


def _apart(request: v.Publish) -> Iterator[tuple[v.Kind | None, range]]:
    """Ranges of messages that are copied by the same keys, with what they are; and of others."""
    properties, kinds, first = request.properties, request.kinds, 0

    def key(index: int) -> tuple[v.Kind, bytes] | None:
        return (kinds[index], properties[index]) if kinds[index].attributes.copied else None

    for copied, group in groupby(range(len(kinds)), key):
        end = first + len(list(group))
        yield copied[0] if copied else None, range(first, end)
        first = end


def _route(session: Session, request: v.Publish, kinds: Sequence[v.Kind] = ()) -> Work:
    """`kinds` are those of the request, each once, if that is known."""
    targets = session.broker.routes.find(session.connection.virtual_host, request)
    if targets is None:
        return _ask_and_publish(session, request)
    _publish(session, request, targets, kinds=kinds)
    return None


async def _ask_and_publish(session: Session, request: v.Publish) -> None:
    """What stands before the first message that is not known neither waits for the router nor fails with it."""
    if known := session.broker.routes.find_first(session.connection.virtual_host, request):
        _publish(session, request.part(range(len(known))), known)
        request = request.part(range(len(known), len(request.bodies)))
    if request.bodies:
        await _ask_and_publish_all(session, request)


async def _ask_and_publish_all(session: Session, request: v.Publish) -> None:
    routes, observer, host = session.broker.routes, session.broker.observer, session.connection.virtual_host
    asked: Asked | None = None
    try:
        answer = await routes.ask_own(host, request)
        if answer is None:
            asked = observer.asks(request)
            answer = await routes.ask(host, request, asked.metadata if asked else ())
    except BrokerError as error:
        if isinstance(error, SyntaxFault) and len(request.bodies) > 1:
            await _publish_halves(session, request)
            return
        observer.not_routed(session.connection, request, asked, error)
        if request.link and not isinstance(error, InternalError):
            _refuse(session, request, error)
            return
        _fail(session, request, error)
    if answer.faults:
        if fault := answer.faults.get(request.kinds[0]):
            observer.not_routed(session.connection, request, asked, fault)
        await _past_faults(session, request, answer.faults)
        return
    if asked:
        asked.answered()
    _publish(session, request, answer.targets, asked)


async def _publish_halves(session: Session, request: v.Publish) -> None:
    """The properties of some message cannot be read, and it is not said whose: what stands before it is published."""
    count = len(request.bodies)
    for half in (range(count // 2), range(count // 2, count)):
        if asking := _route(session, request.part(half)):
            await asking


def _fail(session: Session, request: v.Publish, error: BrokerError) -> NoReturn:
    """Ends the session, once the record has what it was ended by."""
    record = session.connection.record
    if record.on:
        record.received(request, session.broker.publisher.uids.take(len(request.bodies))).failed(error)
    raise error


def _publish(
    session: Session,
    request: v.Publish,
    targets: Sequence[Targets],
    asked: Asked | None = None,
    kinds: Sequence[v.Kind] = (),
) -> None:
    broker, count = session.broker, len(request.bodies)
    uids = broker.publisher.uids.take(count)
    kinds = kinds or distinct(request.kinds)
    session.inbound.of(request.link).note(request, kinds)
    facts = [kinds[0].facts] * count if len(kinds) == 1 else list(map(_FACTS, request.kinds))
    if session.connection.tells_publisher:
        facts = own.told(facts, session.connection.name)
    targets = own.not_local(targets, session.connection.sessions)
    if session.connection.spares:
        targets = own.spared(targets, session.connection.spares)
    messages = Messages(
        uids,
        facts,
        request.properties,
        request.bodies,
        targets,
        range(count),
        _immediate(request, kinds),
    )
    client = session.connection
    followed = broker.observer.published(client, client.record, request, uids, messages, kinds, asked)
    publication = Publication(request, messages, followed)
    if transaction := session.transactions.of(request.transaction):
        _collect(session, transaction, publication)
    else:
        _send(session, publication)
    if broker.unwritable.now:
        broker.unwritable.published(session.connection, broker.unwritable.kept(messages))


def _collect(session: Session, transaction: Transaction, publication: Publication) -> None:
    """Whoever numbers messages hears at once that the transaction has them, or of those that no queue is to have."""
    request, count = publication.request, len(publication.request.bodies)
    transaction.add(publication)
    hold_back(session, (publication,))
    if request.first:
        if len(publication.unrouted) and (left := give_up(session, publication)):
            facts = request.kinds[left[0]].facts
            transaction.fault = NotFound(f"nothing is bound to '{facts.exchange}' for key '{facts.routing_key}'")
        session.confirm(request.link, request.first, range(count), ACCEPTED)


def hold_back(session: Session, publications: Iterable[Publication]) -> None:
    """Has who publishes with a transaction wait, when a queue of these is full: the commit only says what was taken.

    But not for what its connection takes from: the settlements that make room would not be read, perhaps for ever.
    """
    link_of = session.broker.publisher.link_of
    queue_ids = {queue_id for each in publications for targets in set(each.messages.targets) for queue_id in targets}
    if pressure_on(queue_ids, link_of):
        taken = own.takes_from(session.connection.sessions.values())
        relieved = {link for queue_id in taken if (link := link_of(queue_id)) and link.full_everywhere}
        others = [queue_id for queue_id in queue_ids - taken if link_of(queue_id) not in relieved]
        if pressure := pressure_on(others, link_of):
            session.connection.congested(pressure)


def _immediate(request: v.Publish, kinds: Sequence[v.Kind]) -> frozenset[int]:
    if not any(map(_IMMEDIATE, kinds)):
        return frozenset()
    return frozenset(index for index, kind in enumerate(request.kinds) if kind.immediate)


def _send(session: Session, publication: Publication) -> None:
    request, messages = publication.request, publication.messages
    link, first = request.link, request.first
    routed, unrouted = publication.routed, publication.unrouted
    if len(routed):
        ticket = None
        if first or messages.immediate:
            perhaps_back = request if messages.immediate else None
            ticket = PublishTicket(session, perhaps_back, messages.targets, publication.followed, link, first)
        waits = publication.followed.ticket(ticket)
        if pressure := session.broker.publisher.publish(messages.part(routed), waits):
            session.connection.congested(pressure)
    if len(unrouted):
        give_up(session, publication)
        if first and session.confirm(link, first, unrouted, ACCEPTED):
            publication.followed.confirmed(unrouted)


def give_up(session: Session, publication: Publication) -> Sequence[int]:
    """What no queue is to have is returned, where that was asked for. The management node takes what is for it.

    Gives the indexes of the others.
    """
    request, unrouted = publication.request, _left(session, publication)
    returned = [index for index in unrouted if request.kinds[index].mandatory]
    if returned:
        session.send_back(answers.Returned(request, returned))
    publication.followed.unroutable(unrouted, returned)
    return unrouted


def _left(session: Session, publication: Publication) -> Sequence[int]:
    """What of those that no queue is to have the management node does not take."""
    management, request, unrouted = session.broker.management, publication.request, publication.unrouted
    if management is None or not any(map(_is_managed, distinct(request.kinds))):
        return unrouted
    asked = [index for index in unrouted if _is_managed(request.kinds[index])]
    taken = set(management.take(session.connection, request, asked))
    publication.followed.managed(sorted(taken))
    return [index for index in unrouted if index not in taken]


def _is_managed(kind: v.Kind) -> bool:
    return kind.facts.routing_key == v.MANAGEMENT and not kind.facts.exchange
