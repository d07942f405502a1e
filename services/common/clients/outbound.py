"""Messages on their way to queues: a run as its publisher sees it, and one attempt to hand it to one queue process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from services.common.message.weight import BESIDE, FRAME_BYTES, weight
from services.rpc import queue_pb2 as pb

Refused = tuple[int, int, int, int]  # first, count, queue id, Reason

_APART_MS = 50  # of times to live of messages that came so close together, no client can tell
_RUN, _QUEUE = 64, 10  # bytes that a run's own description takes, and each queue in it


class Ticket(Protocol):
    """Who waits for a run."""

    def settled(self, refusals: list[Refused]) -> None:
        """Called once, when every queue process concerned has answered."""


@dataclass(slots=True)
class Run:
    """Messages alike but for identity, properties and body, and the queues where they go."""

    virtual_host: str
    exchange: str
    routing_key: str
    queue_ids: tuple[int, ...]
    format: str
    persistent: bool
    priority: int
    ttl_ms: int | None
    immediate: bool
    properties: list[bytes]
    bodies: list[bytes]
    size: int  # of all properties and bodies
    traces: dict[int, bytes] | None = None  # index → context, of those that get spans

    def beside(self, count: int, queues: int) -> int:
        """Bytes of a frame for `count` of them to so many queues, beside properties and bodies."""
        return _RUN + len(self.exchange) + len(self.routing_key) + BESIDE * count + _QUEUE * queues


@dataclass(slots=True)
class Delivery:
    """What is still open of a run: `pending` attempts; the refusals so far."""

    ticket: Ticket | None
    pending: int = 0
    refusals: list[Refused] = field(default_factory=list)

    def refuse(self, first: int, count: int, queue_id: int, reason: int) -> None:
        """A queue does not take some of it."""
        self.refusals.append((first, count, queue_id, reason))

    def finish(self) -> None:
        """One attempt was answered in full."""
        self.pending -= 1
        if not self.pending and self.ticket:
            self.ticket.settled(self.refusals)


@dataclass(slots=True)
class Attempt:
    """A run, or a part of it, as it goes to one queue process."""

    run: Run
    queue_ids: Sequence[int]
    uids: Sequence[int]
    properties: Sequence[bytes]
    bodies: Sequence[bytes]
    first: int  # index of the first message within the run
    time_ms: int
    delivery: Delivery
    size: int
    resent: bool = False
    lost_with: frozenset[str] = frozenset()  # processes that it may have killed

    def encode(self) -> pb.PublishRun:
        """The run's description on the wire; the columns are the batch's affair."""
        run = self.run
        encoded = pb.PublishRun(
            count=len(self.bodies),
            virtual_host=run.virtual_host,
            exchange=run.exchange,
            routing_key=run.routing_key,
            queue_ids=self.queue_ids,
            format=run.format,
            persistent=run.persistent,
            priority=run.priority,
            ttl_ms=run.ttl_ms,
            immediate=run.immediate,
            resent=self.resent,
        )
        properties = self.properties
        if properties.count(properties[0]) == len(properties):
            encoded.shared_properties = properties[0]
        return encoded

    def traced(self, offset: int) -> Iterator[pb.Traced]:
        """Its traced messages, in a batch where its first one is at `offset`."""
        first = self.first
        for index, context in (self.run.traces or {}).items():
            if first <= index < first + len(self.bodies):
                yield pb.Traced(index=offset + index - first, context=context)

    def part(self, first: int, count: int, queue_ids: Sequence[int]) -> Attempt:
        """The same for some of the messages and some of the queues, to be sent again."""
        end = first + count
        properties, bodies = self.properties[first:end], self.bodies[first:end]
        return Attempt(
            run=self.run,
            queue_ids=queue_ids,
            uids=self.uids[first:end],
            properties=properties,
            bodies=bodies,
            first=self.first + first,
            time_ms=self.time_ms,
            delivery=self.delivery,
            size=weight(properties, bodies) + self.run.beside(count, len(queue_ids)),
            resent=True,
            lost_with=self.lost_with,
        )


def fitting(attempts: list[Attempt]) -> tuple[list[Attempt], int]:
    """The first attempts that fit into a frame, one at least, and their size."""
    total = 0
    for index, attempt in enumerate(attempts):
        if index and total + attempt.size > FRAME_BYTES:
            return attempts[:index], total
        total += attempt.size
    return attempts, total


def refused_parts(attempts: Iterable[Attempt], refusal: pb.Refusal) -> Iterator[tuple[Attempt, pb.Refusal]]:
    """What a refusal, which counts from a batch's first message, says of each attempt, counted from its own first."""
    first, left = refusal.first, refusal.count
    for attempt in attempts:
        count = len(attempt.bodies)
        if first < count and left:
            taken = min(left, count - first)
            yield attempt, pb.Refusal(queue_id=refusal.queue_id, reason=refusal.reason, first=first, count=taken)
            left -= taken
        first = max(0, first - count)


def encode(attempts: list[Attempt], sequence: int, transaction: int, resumed: Sequence[int] = ()) -> bytes:
    """A batch as it goes on the wire."""
    time_ms = attempts[0].time_ms if attempts else 0
    apart = False
    batch = pb.PublishBatch(sequence=sequence, transaction=transaction, time_ms=time_ms, resumed=resumed)
    uids, bodies, properties = batch.uids, batch.bodies, batch.properties
    for attempt in attempts:
        if not -_APART_MS <= attempt.time_ms - time_ms <= _APART_MS:
            apart = True  # some have waited for an owner
        if attempt.run.traces:
            batch.traced.extend(attempt.traced(len(uids)))
        uids.extend(attempt.uids)
        bodies.extend(attempt.bodies)
        run = attempt.encode()
        if not run.HasField("shared_properties"):
            properties.extend(attempt.properties)
        batch.runs.append(run)
    if apart:
        batch.times_ms.extend([attempt.time_ms for attempt in attempts])
    return batch.SerializeToString()
