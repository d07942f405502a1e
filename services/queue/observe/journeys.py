"""Traced messages in the queues of this process: `enqueue`, the identity of each `send`, and `move`.

Nearly all messages are not traced. Those that are stand in `live` by uid from their arrival until their last copy is
gone; while it is empty, nothing here costs anything, and else a batch costs one look at its uids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from services.common.clock import epoch_ns
from services.common.telemetry import conventions as c
from services.common.telemetry.context import SpanContext, new_root
from services.common.telemetry.span import Attributes, Span, SpanLink
from services.common.telemetry.tracer import OFF, Tracer
from services.common.topology.slots import SlotId, slot_of
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.queue.links.link import PeerLink as GatewayLink
    from services.queue.machine.consumers import Consumer
    from services.rpc.router_pb2 import QueueDefinition

_AT_MOST = 20_000  # messages; some kilobytes each
_MS = 1_000_000


class Copy:
    """A traced message in one queue."""

    __slots__ = (
        "attempts", "attributes", "enqueue", "entered", "link", "move", "parent", "queue", "send", "sent_ns", "since_ns"
    )  # fmt: skip

    def __init__(self, queue: str, parent: SpanContext, since_ns: int, attributes: Attributes) -> None:
        self.queue = queue
        self.parent = parent  # the span that the message came with
        self.since_ns = since_ns
        self.attributes = attributes
        self.enqueue: Span | None = None  # while it is not as safe as it is to be
        self.entered = False  # has its place in the queue
        self.attempts = 0
        self.send: SpanContext | None = None  # the latest attempt, also when it is over
        self.sent_ns = 0
        self.link: GatewayLink | None = None  # that makes the span of an attempt under way
        self.move: Span | None = None

    def span(self, operation: str, kind: c.Kind, start_ns: int, *, operation_type: str = "") -> Span:
        """A child of the span that the message came with."""
        attributes = {**c.operation(operation, self.queue, kind=operation_type), **self.attributes}
        return Span(
            c.span_name(operation, self.queue), kind, self.parent.child(), self.parent, attributes, start_ns=start_ns
        )


Copies = dict[SlotId, Copy]  # by queue id


class Journeys:
    """One for each process. `link_after` is in seconds: later deliveries begin a trace of their own."""

    def __init__(self, tracer: Tracer = OFF, link_after: float = 300.0) -> None:
        self.live: dict[int, Copies] = {}
        self.tracer = tracer
        self._link_after = int(link_after * 1e9)
        self._taken: pb.TracedDelivery | None = None

    # -------------------------------------------------------------- coming

    def arrived(self, uid: int, queue: QueueDefinition, context: SpanContext) -> None:
        """A traced message is about to be taken in."""
        copy = self._add(uid, queue, context, epoch_ns())
        if copy:
            copy.enqueue = copy.span(c.ENQUEUE, c.Kind.INTERNAL, copy.since_ns)

    def recovered(self, uid: int, queue: QueueDefinition, context: bytes, time_ms: int, attempts: int) -> None:
        """A traced message of a former owner."""
        copy = self._add(uid, queue, SpanContext.from_bytes(context), time_ms * _MS)
        if copy:
            copy.attempts, copy.entered = attempts, True

    def _add(self, uid: int, queue: QueueDefinition, context: SpanContext, since_ns: int) -> Copy | None:
        copies = self.live.get(uid)
        if copies is not None and slot_of(queue) in copies:
            return None  # it was sent again
        if copies is None:
            if len(self.live) >= _AT_MOST or not self.tracer.on:
                self.tracer.untraced += 1
                return None
            copies = self.live[uid] = {}
        attributes: Attributes = {
            c.UID: uid,
            c.VIRTUAL_HOST: queue.virtual_host,
            c.PARTITION: str(queue.partition),
        }
        copy = copies[slot_of(queue)] = Copy(queue.name, context, since_ns, attributes)
        return copy

    def context_of(self, uid: int) -> bytes | None:
        """What travels with a message that is handed over to the next owner."""
        copies = self.live.get(uid)
        return next(iter(copies.values())).parent.to_bytes() if copies else None

    # -------------------------------------------------------------- being there

    def copies(self, queue_id: SlotId, uids: Iterable[int]) -> Iterator[tuple[int, Copy]]:
        """The traced ones of a queue, among messages by uid."""
        live = self.live
        if live.keys().isdisjoint(uids):
            return
        for uid in uids:
            if (copies := live.get(uid)) and (copy := copies.get(queue_id)):
                yield uid, copy

    def enqueued(self, copy: Copy, outcome: str = c.ACCEPTED) -> None:
        """It is as safe as it is to be, or refused; what is said first counts."""
        span, copy.enqueue = copy.enqueue, None
        if span is None:
            return
        span.attributes[c.OUTCOME] = outcome
        if outcome != c.ACCEPTED:
            span.fail(outcome)
        self.tracer.end(span)

    def delivered(self, uid: int, copy: Copy, consumer: Consumer | None) -> None:
        """An attempt begins; its gateway is told with the message."""
        now = epoch_ns()
        dwell = max(now - copy.since_ns, 0)
        copy.send = copy.parent.child() if dwell <= self._link_after else new_root()
        copy.sent_ns, copy.attempts = now, copy.attempts + 1
        traced = pb.TracedDelivery(
            uid=uid,
            context=copy.send.to_bytes(),
            parent=copy.parent.to_bytes(),
            dwell_ms=dwell // _MS,
            attempt=copy.attempts,
        )
        if consumer is not None:
            traced.consumer = consumer.handle
            copy.link = consumer.link  # type: ignore[assignment] # which is one, but in tests of the machine alone
            consumer.link.deliveries.traced.append(traced)
        else:
            self._taken = traced

    def taken(self, uid: int, queue_id: SlotId, link: GatewayLink) -> pb.TracedDelivery | None:
        """What the gateway is told of a message that it has just got without a consumer."""
        traced, self._taken = self._taken, None
        if traced is None or traced.uid != uid:
            return None
        if copy := self.live.get(uid, {}).get(queue_id):
            copy.link = link
        return traced

    def came_back(self, copy: Copy, *, counts: bool) -> None:
        """The attempt is over, by the word of its gateway or because that is gone."""
        link, copy.link = copy.link, None
        copy.attempts -= not counts
        if link is not None and getattr(link, "broken", False) and copy.send:
            self._lost(copy, copy.send)

    def _lost(self, copy: Copy, context: SpanContext) -> None:
        """The gateway that would have made the span is gone."""
        span = copy.span(c.SEND, c.Kind.PRODUCER, copy.sent_ns, operation_type=c.SEND)
        span.context = context
        if context.trace_id != copy.parent.trace_id:
            span.parent, span.links = None, [SpanLink(copy.parent, {})]
        span.attributes[c.ATTEMPT], span.attributes[c.OUTCOME] = copy.attempts, c.GATEWAY_LOST
        span.fail(c.GATEWAY_LOST)
        self.tracer.end(span)

    # -------------------------------------------------------------- going

    def moving(self, uid: int, queue_id: SlotId, reason: str, target: str, since_ms: int) -> bytes | None:
        """A dead letter is sent on; gives the context that goes with it, the same when it is tried again."""
        copy = self.live.get(uid, {}).get(queue_id)
        if copy is None:
            return None
        if copy.move is None:
            copy.move = self._move(copy, reason, target, since_ms * _MS)
        return copy.move.context.to_bytes()

    def gone(self, uid: int, queue_id: SlotId, reason: str = "", target: str = "") -> None:
        """The copy is no more; with a reason, or after `moving`: nobody took it from the queue."""
        copies = self.live.get(uid)
        copy = copies.pop(queue_id, None) if copies else None
        if copy is None:
            return
        if not copies:
            del self.live[uid]
        self.enqueued(copy)
        if reason or copy.move:
            self.tracer.end(copy.move or self._move(copy, reason, target, 0))

    def _move(self, copy: Copy, reason: str, target: str, since_ns: int) -> Span:
        span = copy.span(c.MOVE, c.Kind.INTERNAL, since_ns or epoch_ns())
        if copy.send and copy.send.trace_id == copy.parent.trace_id:
            span.parent = copy.send
        elif copy.send:
            span.links.append(SpanLink(copy.send, {}))
        span.attributes[c.REASON] = c.MOVE_REASONS.get(reason, reason)
        if target:
            span.attributes[c.TARGET] = target
        return span

    def forget(self, queue_ids: Iterable[SlotId]) -> None:
        """These queues are somebody else's from now on."""
        left = set(queue_ids)
        for uid, copies in list(self.live.items()):
            for queue_id in left & copies.keys():
                del copies[queue_id]
            if not copies:
                del self.live[uid]
