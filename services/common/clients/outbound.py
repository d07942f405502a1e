"""Messages on their way to queues: a run as its publisher sees it, and one attempt to hand it to one queue process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from services.rpc import queue_pb2 as pb

Refused = tuple[int, int, int, int]  # first, count, queue id, Reason


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
    size: int  # of all bodies
    traces: dict[int, bytes] | None = None  # index → context, of those that get spans


@dataclass(slots=True)
class Delivery:
    """What is still open of a run: `pending` attempts; the refusals so far."""

    ticket: Ticket | None
    pending: int = 0
    refusals: list[Refused] = field(default_factory=list)

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
        bodies = self.bodies[first:end]
        return Attempt(
            run=self.run,
            queue_ids=queue_ids,
            uids=self.uids[first:end],
            properties=self.properties[first:end],
            bodies=bodies,
            first=self.first + first,
            time_ms=self.time_ms,
            delivery=self.delivery,
            size=sum(map(len, bodies)),
            resent=True,
        )
