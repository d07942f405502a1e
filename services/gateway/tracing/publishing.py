"""`receive {exchange}`: from the bytes of a publish to the moment when everything that it asks for is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from services.common.clients.outbound import Refused, Run, Ticket
from services.common.clients.partition_table import PartitionTable
from services.common.clock import epoch_ns
from services.common.errors import BrokerError, SyntaxFault
from services.common.message import format_named
from services.common.telemetry import conventions as c
from services.common.telemetry.context import SpanContext, new_root
from services.common.telemetry.rpc import client_span
from services.common.telemetry.span import Attributes, Span
from services.common.telemetry.tracer import Tracer
from services.gateway.tracing.peer import peer_attributes
from services.gateway.tracing.sampler import PARENT, Pick, Publisher, Sampler
from services.gateway.vocabulary import Publish
from services.rpc import queue_pb2, router_pb2

if TYPE_CHECKING:
    from services.gateway.session import Session

_REASONS: dict[int, str] = {number: name.lower() for name, number in queue_pb2.Reason.items()}


@dataclass(slots=True)
class Asked:
    """A question to the router for a run whose first message is traced: its span, and what becomes its parent."""

    span: Span
    receive: SpanContext
    parent: SpanContext  # of the application

    def answered(self) -> None:
        """The router has said where it goes."""
        self.span.end_ns = epoch_ns()

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What goes with the call."""
        return (("traceparent", self.span.context.traceparent()),)


@dataclass(slots=True)
class Reception:
    """The traced messages of one run."""

    tracer: Tracer
    queues: Mapping[int, router_pb2.QueueDefinition]
    table: PartitionTable
    run: Run
    spans: dict[int, Span] = field(default_factory=dict)  # by index within the run

    def answered(self, refusals: Sequence[Refused]) -> None:
        """Every queue has its messages, or has said why not."""
        refused = {(first + at, queue_id): reason for first, count, queue_id, reason in refusals for at in range(count)}
        for index, span in self.spans.items():
            queue_ids = self.run.queue_ids
            reasons = [refused.get((index, queue_id), 0) for queue_id in queue_ids]
            for queue_id, reason in zip(queue_ids, reasons, strict=True):
                self._enqueued(span, queue_id, _REASONS.get(reason, "other") if reason else c.ACCEPTED)
            self._end(span, next((_REASONS.get(reason, "other") for reason in reasons if reason), ""))

    def unroutable(self, *, returned: bool) -> None:
        """No queue gets them; that is a fault only where the publisher asked to be told."""
        for span in self.spans.values():
            self._end(span, c.UNROUTABLE if returned else "", c.UNROUTABLE)

    def committed(self, *, returned: bool) -> None:
        """Their transaction is."""
        if self.run.queue_ids:
            self.answered(())
        else:
            self.unroutable(returned=returned)

    def rolled_back(self) -> None:
        """Their transaction was rolled back, or could not be committed."""
        for span in self.spans.values():
            self._end(span, "", c.ROLLED_BACK)

    def _end(self, span: Span, error: str, outcome: str = c.ACCEPTED) -> None:
        span.attributes[c.OUTCOME] = error or outcome
        if error:
            span.fail(error)
        self.tracer.end(span)

    def _enqueued(self, span: Span, queue_id: int, outcome: str) -> None:
        definition = self.queues.get(queue_id)
        name = definition.name if definition else ""
        event: Attributes = {c.QUEUE: name, c.OUTCOME: outcome}
        if definition:
            event[c.PARTITION] = str(definition.partition)
            owner = self.table.owners.get(definition.partition)
            event[c.EPOCH] = owner.epoch if owner else 0
        span.event(f"{name} {c.ENQUEUE}".strip(), event)


@dataclass(slots=True)
class TracedTicket:
    """Hears what became of a run before whoever waits for it does."""

    reception: Reception
    ticket: Ticket | None

    def settled(self, refusals: list[Refused]) -> None:
        self.reception.answered(refusals)
        if self.ticket:
            self.ticket.settled(refusals)


class Publishing:
    """Begins the spans of what a gateway receives."""

    def __init__(
        self, tracer: Tracer, sampler: Sampler, queues: Mapping[int, router_pb2.QueueDefinition], table: PartitionTable
    ) -> None:
        self._sampler = sampler
        self._tracer = tracer
        self._queues = queues
        self._table = table

    def concerns(self, request: Publish) -> bool:
        """Whether any message of a run may be traced; asked for every run."""
        return (self._sampler.active or request.attributes.sampled) and self._tracer.on

    def ask(self, request: Publish) -> Asked | None:
        """The router is about to be asked where a run goes."""
        if not self._tracer.on or not request.attributes.sampled:
            return None
        parent = format_named(request.format).trace_context(request.properties[0])
        if parent is None or not parent.sampled:
            return None
        receive = parent.child()
        return Asked(client_span(c.ROUTE, receive), receive, parent)

    def refused(self, session: Session, request: Publish, asked: Asked, error: BrokerError) -> None:
        """There is no such exchange, or nobody who could say: the run goes nowhere and ends its session."""
        of_run, pick = _attributes(session, request, (), cached=False), Pick(0, asked.parent, PARENT)
        for span in (asked.span, _span(request, pick, of_run, asked.span.start_ns, asked)):
            span.fail(type(error).__name__)
            self._tracer.end(span)

    def begin(self, session: Session, request: Publish, run: Run, uids: range, asked: Asked | None) -> Reception | None:
        """The traced messages of a run that is about to be published; None when there are none."""
        connection, queue_ids = session.connection, run.queue_ids
        publisher = Publisher(run.virtual_host, (connection.client, connection.user, connection.name))
        picks = self._sampler.pick(publisher, request, queue_ids)
        if not picks:
            return None
        reception = Reception(self._tracer, self._queues, self._table, run)
        of_run = _attributes(session, request, queue_ids, cached=asked is None)
        start = asked.span.start_ns if asked else epoch_ns()
        for pick in picks:
            span = _span(request, pick, of_run, start, asked if pick.at == 0 else None)
            span.attributes[c.UID] = uids[pick.at]
            reception.spans[pick.at] = span
        if asked and 0 in reception.spans:
            self._tracer.end(asked.span, asked.span.end_ns)
        run.traces = {index: span.context.to_bytes() for index, span in reception.spans.items()}
        return reception


def _attributes(session: Session, request: Publish, queue_ids: tuple[int, ...], *, cached: bool) -> Attributes:
    return {
        **c.operation(c.RECEIVE, request.exchange, kind=c.RECEIVE),
        c.ROUTING_KEY: request.routing_key,
        c.QUEUES: len(queue_ids),
        c.ROUTE_CACHED: cached,
        c.DURABLE: request.attributes.persistent,
        **peer_attributes(session.connection),
    }


def _span(request: Publish, pick: Pick, of_run: Attributes, start: int, asked: Asked | None) -> Span:
    properties, message_format = request.properties[pick.at], format_named(request.format)
    attributes: Attributes = {**of_run, c.BODY_SIZE: len(request.bodies[pick.at]), c.RULE: pick.reason}
    for name, attribute in (("message-id", c.MESSAGE_ID), ("correlation-id", c.CONVERSATION_ID)):
        with suppress(SyntaxFault):
            if text := message_format.text(properties, name):
                attributes[attribute] = text
    context = asked.receive if asked else pick.parent.child() if pick.parent else new_root()
    return Span(
        name=c.span_name(c.RECEIVE, request.exchange),
        kind=c.Kind.CONSUMER,
        context=context,
        parent=pick.parent,
        attributes=attributes,
        start_ns=start,
    )
