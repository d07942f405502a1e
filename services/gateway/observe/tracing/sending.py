"""`send {queue}`: one for each attempt to deliver a traced message, from its arrival here to the word of the client.

The queue process chose the identity of the span, so that what it makes of the outcome has the right parent; it is made
here, where the client's word is heard. It survives a change of the queue's owner as the delivery itself does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from services.common.clock import epoch_ns
from services.common.telemetry import conventions as c
from services.common.telemetry.context import SpanContext, new_root
from services.common.telemetry.span import Attributes, Span, SpanLink
from services.common.telemetry.tracer import Tracer
from services.common.topology.slots import SlotId
from services.gateway.observe.tracing.peer import peer_attributes
from services.rpc import queue_pb2 as pb
from services.rpc import router_pb2

if TYPE_CHECKING:
    from services.gateway.observe.client import Client

OUTCOMES = {
    pb.ACCEPT: c.ACCEPTED,
    pb.RELEASE: c.RELEASED,
    pb.REJECT: c.REJECTED,
    pb.RETURN: c.RELEASED,
    pb.RESTORE: c.NOT_SENT,
    pb.ABANDON: c.CONNECTION_LOST,
}
_FAILED = frozenset({c.CONNECTION_LOST, c.OWNER_CHANGED})
_OPERATIONS = {pb.ACCEPT: "ack", pb.RELEASE: "nack", pb.RETURN: "nack", pb.REJECT: "reject"}


class Sending:
    """`open` are the spans of deliveries under way, by uid and queue; mostly there are none."""

    def __init__(self, tracer: Tracer, queues: Mapping[SlotId, router_pb2.QueueDefinition]) -> None:
        self.open: dict[int, dict[int, Span]] = {}
        self._tracer = tracer
        self._queues = queues

    def expect(self, traced: pb.TracedDelivery, queue_id: SlotId) -> None:
        """A traced message has come, to be written when the socket takes it."""
        definition = self._queues.get(queue_id)
        name = definition.name if definition else ""
        attributes: Attributes = {
            **c.operation(c.SEND, name, kind=c.SEND),
            c.UID: traced.uid,
            c.ATTEMPT: traced.attempt,
            c.DWELL_MS: traced.dwell_ms,
        }
        if definition:
            attributes[c.PARTITION] = str(definition.partition)
        context, origin = SpanContext.from_bytes(traced.context), SpanContext.from_bytes(traced.parent)
        in_trace = origin.trace_id == context.trace_id
        span = Span(
            name=c.span_name(c.SEND, name),
            kind=c.Kind.PRODUCER,
            context=context._replace(remote=False),
            parent=origin if in_trace else None,
            attributes=attributes,
            links=[] if in_trace else [SpanLink(origin, {})],
        )
        # What was parked here when its owner went away comes again from the next one.
        self.ended(queue_id, c.OWNER_CHANGED, [traced.uid])
        self.open.setdefault(traced.uid, {})[queue_id] = span

    def written(
        self, client: Client, queue_id: SlotId, uids: Sequence[int], first: int, *, tag: str, settled: bool
    ) -> None:
        """Deliveries numbered from `first` go to the socket; `settled`: nothing more will be heard of them."""
        for index, uid in self._traced(uids):
            span = self.open[uid].get(queue_id)
            if span is None:
                continue
            span.attributes.update(peer_attributes(client))
            span.attributes[c.DELIVERY_TAG] = first + index
            if tag:
                span.attributes[c.CONSUMER] = tag
            span.event(c.WRITTEN)
            if settled:
                self.ended(queue_id, c.ACCEPTED, [uid])

    def settled(
        self, client: Client, queue_id: SlotId, outcome: pb.Outcome.ValueType, uids: Sequence[int], why: str = ""
    ) -> None:
        """The client's word, for one delivery or for many at once: then it is an operation of its own, with links."""
        spans = self.ended(queue_id, OUTCOMES[outcome], uids, why)
        if not spans or len(uids) < 2 or outcome not in _OPERATIONS:
            return
        definition = self._queues.get(queue_id)
        name = definition.name if definition else ""
        word, now = _OPERATIONS[outcome], epoch_ns()
        attributes = {
            **c.operation(word, name, kind=c.SETTLE),
            c.BATCH_COUNT: len(uids),
            **peer_attributes(client),
        }
        links = [SpanLink(span.context, {c.UID: span.attributes[c.UID]}) for span in spans]
        self._tracer.end(
            Span(c.span_name(word, name), c.Kind.CLIENT, new_root(), None, attributes, links, start_ns=now), now
        )

    def ended(self, queue_id: SlotId, outcome: str, uids: Sequence[int], why: str = "") -> list[Span]:
        """Deliveries are over, `why` if that was said; gives the spans that were."""
        spans: list[Span] = []
        for _, uid in self._traced(uids):
            of_message = self.open[uid]
            span = of_message.pop(queue_id, None)
            if not of_message:
                del self.open[uid]
            if span is None:
                continue
            span.attributes[c.OUTCOME] = outcome
            if why:
                span.attributes[c.REASON] = why
            if outcome in _FAILED:
                span.fail(outcome)
            if outcome in (c.ACCEPTED, c.REJECTED, c.RELEASED):
                span.event(c.SETTLE, {c.OUTCOME: outcome})
            self._tracer.end(span)
            spans.append(span)
        return spans

    def _traced(self, uids: Iterable[int]) -> list[tuple[int, int]]:
        """(index, uid) of those that are traced."""
        if self.open.keys().isdisjoint(uids):
            return []
        return [(index, uid) for index, uid in enumerate(uids) if uid in self.open]
