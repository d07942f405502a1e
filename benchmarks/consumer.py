"""The consuming process: counts deliveries by their bytes, verifies one of every read, acknowledges many at a time."""

from __future__ import annotations

import os
import select
import time
from itertools import product
from typing import TYPE_CHECKING

from benchmarks.counters import Counter, Counters
from benchmarks.delivery import Layout, learn
from benchmarks.failure import BenchmarkError
from benchmarks.wire import Connection, acknowledge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.load import Destination

BUFFER_BYTES = 1 << 20
DRAIN_SECONDS = 60.0
POLL_SECONDS = 0.05
WORTH_A_READ = 64 * 1024
PAUSE_SECONDS = 0.001
"""After a round that read less, so that a slow broker is not slowed further by a consumer that reads crumbs."""


class Subscriber:
    """One connection and how far its deliveries are."""

    def __init__(self, destination: Destination, queues: Sequence[str]) -> None:
        load = destination.load
        self._bodies = load.bodies
        # One producer per queue: its bodies arrive in its order.
        self._in_order = load.stream.ordered and len(queues) == len(load.stream.consumers) == 1
        self._known: set[bytes] = set()
        self._ack_every = load.prefetch // 10
        self._connection = Connection(destination.address)
        for number, (queue, arguments) in enumerate(product(queues, load.stream.consumers)):
            self._connection.consume(queue, prefetch=load.prefetch, number=number, arguments=arguments)
        self.socket = self._connection.socket
        self._layout: Layout | None = None
        self._learning = bytearray(self._connection.leftover())
        self._bytes = 0
        self._acked = 0
        self.consumed = 0

    def receive(self, buffer: memoryview) -> int:
        """Reads once; gives the number of bytes. Raises BenchmarkError when what came is not what was published."""
        size = self.socket.recv_into(buffer)
        if not size:
            raise BenchmarkError("the broker closed a consumer's connection")
        if self._layout:
            self._count(buffer[:size], self._layout)
        else:
            self._learn(buffer[:size])
        if self._ack_every and self.consumed - self._acked >= self._ack_every:
            self.acknowledge()
        return size

    def acknowledge(self) -> None:
        """Acknowledges everything consumed."""
        if self._ack_every and self.consumed > self._acked:
            self.socket.sendall(acknowledge(self.consumed))
            self._acked = self.consumed

    def _learn(self, data: memoryview) -> None:
        self._learning += data
        self._layout = learn(memoryview(self._learning))
        if self._layout:
            self._count(memoryview(self._learning), self._layout)

    def _count(self, data: memoryview, layout: Layout) -> None:
        # The last whole delivery of every read is looked at; a byte too many or too few before it would show there.
        self._bytes += len(data)
        self.consumed, partial = divmod(self._bytes, layout.length)
        start = len(data) - partial - layout.length
        if start >= 0:
            self._verify(layout.verify(data, start, self.consumed))

    def _verify(self, body: bytes) -> None:
        bodies = self._bodies
        if self._in_order:
            known = bodies[(self.consumed - 1) % len(bodies)].startswith(body)
        else:
            self._known = self._known or {each[: len(body)] for each in bodies}
            known = body in self._known
        if not known:
            raise BenchmarkError(f"delivery {self.consumed} has another body than was sent")


def consume(destination: Destination, counters: Counters) -> None:
    """The consuming process of a load: until everything that was published has arrived, exactly."""
    queues = destination.queues
    shares = [queues] if destination.load.together else [[queue] for queue in queues]
    subscribers = [Subscriber(destination, share) for share in shares]
    by_descriptor = {subscriber.socket.fileno(): subscriber for subscriber in subscribers}
    buffer = memoryview(bytearray(BUFFER_BYTES))
    poll = select.epoll()
    for descriptor in by_descriptor:
        poll.register(descriptor, select.EPOLLIN)
    counters[Counter.CONSUMER_READY] = 1
    parent = os.getppid()
    deadline = 0.0
    while not _complete(counters, destination.load.copies):
        size = sum([by_descriptor[descriptor].receive(buffer) for descriptor, _ in poll.poll(POLL_SECONDS)])
        if size < WORTH_A_READ:
            time.sleep(PAUSE_SECONDS)
        counters[Counter.CONSUMED] = sum([subscriber.consumed for subscriber in subscribers])
        if counters[Counter.FINISHED] or os.getppid() != parent:
            deadline = deadline or time.monotonic() + DRAIN_SECONDS
            _still_in_time(deadline, counters, destination)
    for subscriber in subscribers:
        subscriber.acknowledge()


def _complete(counters: Counters, copies: int) -> bool:
    expected = counters[Counter.PUBLISHED] * copies
    if counters[Counter.FINISHED] and counters[Counter.CONSUMED] > expected:
        raise BenchmarkError(f"{counters[Counter.CONSUMED]} deliveries of {expected} publishes")
    return bool(counters[Counter.FINISHED]) and counters[Counter.CONSUMED] == expected


def _still_in_time(deadline: float, counters: Counters, destination: Destination) -> None:
    if time.monotonic() > deadline:
        expected = counters[Counter.PUBLISHED] * destination.load.copies
        raise BenchmarkError(f"only {counters[Counter.CONSUMED]} of {expected} messages arrived")
