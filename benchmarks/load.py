"""The load of one run, and where it goes."""

from __future__ import annotations

import os
import random
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from benchmarks.failure import BenchmarkError
from benchmarks.properties import table
from benchmarks.stream import PLAIN, Stream, durable
from benchmarks.wire import CHANNEL, NO_TABLE, Address, Connection, publication_of

if TYPE_CHECKING:
    from collections.abc import Iterator

BODY_SIZE = 256
IN_FLIGHT = 100_000
IN_FLIGHT_BYTES = 64 << 20
"""Messages published and not consumed yet, above which producers pause: a rate is one that consumers keep up with."""
UNCONFIRMED = 10_000
PREFETCH = 10_000
MOST_PER_CHUNK = 200
CHUNK_BYTES = MOST_PER_CHUNK * BODY_SIZE
MOST_CHUNKS = 32
MOST_BYTES = 16 << 20
"""Of bodies that a producer sends over and over."""
PACE_SECONDS = 0.005
"""Of messages at a given rate are sent together, at most."""
LEAST_PER_CONNECTION = 1000
"""Of unconfirmed messages and of prefetch, however many connections share the sums above."""


@dataclass(frozen=True, slots=True)
class Load:
    """How messages are sent and taken. `producers` go to as many queues, or all of one producer's to every queue.

    `together`: one connection consumes from all queues. `size`: bytes of each body. `channels`: of each producer's
    connection, on which it publishes in turn. `window`: messages that each may have unconfirmed; 0: as many as usual.
    `rate`: messages a second that all producers send at most; 0: as many as are taken.
    """

    queues: int = 1
    producers: int = 1
    confirms: bool = False
    acks: bool = False
    persistent: bool = False
    fanout: bool = False
    together: bool = False
    size: int = BODY_SIZE
    channels: int = 1
    stream: Stream = PLAIN
    window: int = 0
    rate: float = 0

    def on(self, queue_type: str) -> Load:
        """The same on queues of a type that has to be said; "" for what queues are anyway."""
        if not queue_type:
            return self
        return replace(self, stream=replace(self.stream, arguments=table({"x-queue-type": queue_type})))

    @property
    def in_flight(self) -> int:
        """Messages that may be published and not consumed yet."""
        return min(IN_FLIGHT, IN_FLIGHT_BYTES // self.size)

    @property
    def copies(self) -> int:
        """Deliveries that one published message becomes."""
        return self.queues if self.fanout else 1

    @property
    def chunk_messages(self) -> int:
        """Messages that a producer encodes together: about 64 KiB, and never most of what may be open."""
        fitting = max(1, CHUNK_BYTES // self.size)
        most = min(MOST_PER_CHUNK, fitting, self.unconfirmed // 4, self.in_flight // self.producers // 8)
        return max(1, min(most, int(self.rate * PACE_SECONDS))) if self.rate else most

    @property
    def unconfirmed(self) -> int:
        """Messages that one producer may have unconfirmed."""
        return self.window or max(UNCONFIRMED // self.producers, LEAST_PER_CONNECTION)

    @property
    def bodies(self) -> list[bytes]:
        """What each producer sends, over and over: all different, so that no broker profits from equal content."""
        chunks = max(1, min(MOST_CHUNKS // self.producers, MOST_BYTES // (self.chunk_messages * self.size)))
        stream = random.Random(self.producers).randbytes(chunks * self.chunk_messages * self.size)
        return [stream[at : at + self.size] for at in range(0, len(stream), self.size)]

    @property
    def prefetch(self) -> int:
        return max(PREFETCH // self.queues, LEAST_PER_CONNECTION) if self.acks else 0


@dataclass(frozen=True, slots=True)
class Destination:
    """The queues and the exchange of a run, declared for it alone."""

    address: Address
    load: Load
    name: str = field(default_factory=lambda: f"bench-{os.getpid()}-{os.urandom(4).hex()}")

    @property
    def queues(self) -> list[str]:
        return [f"{self.name}-{number}" for number in range(self.load.queues)]

    @property
    def kind(self) -> str:
        """Of the exchange; "": the default exchange, which is there."""
        return "fanout" if self.load.fanout else self.load.stream.exchange

    @property
    def exchange(self) -> str:
        return self.name if self.kind else ""

    def routing_key(self, producer: int) -> str:
        return "" if self.load.fanout else self.queues[producer % self.load.queues]

    def message(self, producer: int, number: int, body: bytes) -> bytes:
        """The frames of a producer's message `number`."""
        stream = self.load.stream
        key = stream.key(number) if stream.key else self.routing_key(producer)
        properties = durable(number) if self.load.persistent else stream.properties(number)
        channel = CHANNEL + number % self.load.channels
        return publication_of(self.exchange, key, properties, body, channel=channel)


@contextmanager
def declared(address: Address, load: Load, name: str = "") -> Iterator[Destination]:
    """What `load` needs on the broker, deleted again at the end; by a name of its own, or that one."""
    destination = Destination(address, load, name) if name else Destination(address, load)
    connection = Connection(address)
    try:
        _declare(connection, destination)
        yield destination
    finally:
        # After a failure the broker may be gone; the failure is what matters then.
        with suppress(OSError, BenchmarkError):
            _delete(connection, destination)
        connection.close()


def _declare(connection: Connection, destination: Destination) -> None:
    load = destination.load
    stream = load.stream
    if destination.exchange:
        connection.declare_exchange(destination.exchange, destination.kind)
    for number, queue in enumerate(destination.queues):
        connection.declare_queue(queue, durable=load.persistent or stream.durable, arguments=stream.arguments)
        for key, arguments in (("", NO_TABLE),) if load.fanout else stream.bindings(number):
            connection.bind(queue, destination.exchange, key, arguments)


def _delete(connection: Connection, destination: Destination) -> None:
    for queue in destination.queues:
        connection.delete_queue(queue)
    if destination.exchange:
        connection.delete_exchange(destination.exchange)
