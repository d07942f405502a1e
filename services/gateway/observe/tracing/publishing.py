"""`receive {exchange}`: from the bytes of a publish to the moment when everything that it asks for is done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING

from services.common.clients.outbound import Messages, Refused, Targets, Ticket
from services.common.clients.partition_table import PartitionTable
from services.common.clock import epoch_ns
from services.common.errors import BrokerError, SyntaxFault
from services.common.message import format_named
from services.common.message.alike import are_alike
from services.common.message.indexes import pick
from services.common.question import LONGEST_ID
from services.common.telemetry import conventions as c
from services.common.telemetry.context import SpanContext, new_root
from services.common.telemetry.rpc import client_span
from services.common.telemetry.span import Attributes, Span
from services.common.telemetry.tracer import Tracer
from services.common.topology.slots import SlotId
from services.gateway.observe.tracing.peer import peer_attributes
from services.gateway.observe.tracing.sampler import PARENT, Pick, Publisher, Sampler
from services.gateway.vocabulary import Kind, Publish
from services.rpc import queue_pb2, router_pb2

if TYPE_CHECKING:
    from services.gateway.observe.client import Client

_IS_SAMPLED = attrgetter("attributes.sampled")
_REASONS: dict[int, str] = {number: name.lower() for name, number in queue_pb2.Reason.items()}


@dataclass(slots=True)
class Asked:
    """A question to the router for a request whose first message is traced: its span, and what becomes its parent."""

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
    """The traced messages of one request."""

    tracer: Tracer
    queues: Mapping[SlotId, router_pb2.QueueDefinition]
    table: PartitionTable
    targets: Sequence[Targets]  # by number
    spans: dict[int, Span] = field(default_factory=dict)  # by number

    def answered(self, numbers: Sequence[int], refusals: Sequence[Refused] = ()) -> None:
        """Every queue has the messages of these numbers, or has said why not."""
        refused = {(number, each.queue_id): each.reason for each in refusals for number in each.numbers}
        for number, span in self._of(numbers):
            reasons = {queue_id: refused.get((number, queue_id), 0) for queue_id in self.targets[number]}
            for queue_id, reason in reasons.items():
                self._enqueued(span, queue_id, _REASONS.get(reason, "other") if reason else c.ACCEPTED)
            self._end(span, next((_REASONS.get(reason, "other") for reason in reasons.values() if reason), ""))

    def unroutable(self, numbers: Iterable[int], returned: Collection[int]) -> None:
        """No queue gets these; that is a fault only where the publisher asked to be told."""
        for number, span in self._of(numbers):
            self._end(span, c.UNROUTABLE if number in returned else "", c.UNROUTABLE)

    def committed(self) -> None:
        """Their transaction is, and what no queue gets was given up."""
        self.answered(list(self.spans))

    def rolled_back(self) -> None:
        """Their transaction was rolled back, or could not be committed."""
        for _, span in self._of(list(self.spans)):
            self._end(span, "", c.ROLLED_BACK)

    def in_doubt(self) -> None:
        """It is not known whether their transaction was committed."""
        for _, span in self._of(list(self.spans)):
            self._end(span, c.IN_DOUBT)

    def _of(self, numbers: Iterable[int]) -> list[tuple[int, Span]]:
        """What is open of these messages; nothing of it is any more."""
        return [(number, self.spans.pop(number)) for number in numbers if number in self.spans]

    def _end(self, span: Span, error: str, outcome: str = c.ACCEPTED) -> None:
        span.attributes[c.OUTCOME] = error or outcome
        if error:
            span.fail(error)
        self.tracer.end(span)

    def _enqueued(self, span: Span, queue_id: SlotId, outcome: str) -> None:
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
    """Hears what became of messages, and tells the ticket that waits for them."""

    reception: Reception
    ticket: Ticket | None

    def settled(self, numbers: Sequence[int], refusals: list[Refused]) -> None:
        self.reception.answered(numbers, refusals)
        if self.ticket:
            self.ticket.settled(numbers, refusals)


class Publishing:
    """Begins the spans of what a gateway receives."""

    def __init__(
        self,
        tracer: Tracer,
        sampler: Sampler,
        queues: Mapping[SlotId, router_pb2.QueueDefinition],
        table: PartitionTable,
    ) -> None:
        self._sampler = sampler
        self._tracer = tracer
        self._queues = queues
        self._table = table

    def concerns(self, kinds: Iterable[Kind]) -> bool:
        """Whether any message may be traced of those that are published so; asked for every request."""
        return self._tracer.on and (self._sampler.active or any(map(_IS_SAMPLED, kinds)))

    def ask(self, request: Publish) -> Asked | None:
        """The router is about to be asked where a request's messages go."""
        kind = request.kinds[0]
        if not self._tracer.on or not kind.attributes.sampled:
            return None
        parent = format_named(kind.facts.format).trace_context(request.properties[0])
        if parent is None or not parent.sampled:
            return None
        receive = parent.child()
        return Asked(client_span(c.ROUTE, receive), receive, parent)

    def refused(self, client: Client, request: Publish, asked: Asked | None, error: BrokerError) -> None:
        """There is no such exchange, or no router to say so: it goes nowhere and ends its session."""
        first = asked or self.ask(request)
        if first is None:
            return
        of_kind, pick = _attributes(client, request.kinds[0], (), cached=asked is None), Pick(0, first.parent, PARENT)
        received = _span(request, 0, pick, of_kind, first.span.start_ns, first)
        for span in (asked.span, received) if asked else (received,):
            span.fail(type(error).__name__)
            self._tracer.end(span)

    def begin(self, client: Client, request: Publish, messages: Messages, asked: Asked | None) -> Reception | None:
        """The traced ones of messages that are about to be published; None when there are none."""
        reception = Reception(self._tracer, self._queues, self._table, messages.targets)
        publisher = Publisher(client.virtual_host, (client.client, client.user, client.name))
        start = asked.span.start_ns if asked else epoch_ns()
        for (kind, queue_ids), indexes in _alike(request, messages.targets).items():
            picks = self._sampler.pick(publisher, kind, pick(request.properties, indexes), queue_ids)
            of_kind = _attributes(client, kind, queue_ids, cached=asked is None) if picks else {}
            for each in picks:
                number = indexes[each.at]
                span = _span(request, number, each, of_kind, start, None if number else asked)
                span.attributes[c.UID] = messages.uids[number]
                reception.spans[number] = span
        self._tracer.untraced = self._sampler.untraced  # a gateway leaves out no others
        if not reception.spans:
            return None
        if asked and 0 in reception.spans:
            self._tracer.end(asked.span, asked.span.end_ns)
        messages.traces = {number: span.context.to_bytes() for number, span in reception.spans.items()}
        return reception


def _alike(request: Publish, targets: Sequence[Targets]) -> Mapping[tuple[Kind, Targets], Sequence[int]]:
    """The indexes of messages of each kind that go to the same queues."""
    if are_alike(request.kinds) and are_alike(targets):
        return {(request.kinds[0], targets[0]): range(len(targets))}
    found: dict[tuple[Kind, Targets], list[int]] = defaultdict(list)
    for index, key in enumerate(zip(request.kinds, targets, strict=True)):
        found[key].append(index)
    return found


def _attributes(client: Client, kind: Kind, queue_ids: Targets, *, cached: bool) -> Attributes:
    return {
        **c.operation(c.RECEIVE, kind.facts.exchange, kind=c.RECEIVE),
        c.ROUTING_KEY: kind.facts.routing_key,
        c.QUEUES: len(queue_ids),
        c.ROUTE_CACHED: cached,
        c.DURABLE: kind.facts.persistent,
        **peer_attributes(client),
    }


def _span(request: Publish, index: int, pick: Pick, of_kind: Attributes, start: int, asked: Asked | None) -> Span:
    properties, facts = request.properties[index], request.kinds[index].facts
    attributes: Attributes = {**of_kind, c.BODY_SIZE: len(request.bodies[index]), c.RULE: pick.reason}
    for name, attribute in (("message-id", c.MESSAGE_ID), ("correlation-id", c.CONVERSATION_ID)):
        with suppress(SyntaxFault):
            text = format_named(facts.format).text(properties, name) or ""
            if 0 < len(text) <= LONGEST_ID:
                attributes[attribute] = text
    context = asked.receive if asked else pick.parent.child() if pick.parent else new_root()
    return Span(
        name=c.span_name(c.RECEIVE, facts.exchange),
        kind=c.Kind.CONSUMER,
        context=context,
        parent=pick.parent,
        attributes=attributes,
        start_ns=start,
    )
