"""Round trip of one message at a time through an idle broker: published on one connection, received on another."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from benchmarks.delivery import Layout, learn
from benchmarks.echo import echo
from benchmarks.failure import BenchmarkError
from benchmarks.load import BODY_SIZE, Load, declared
from benchmarks.result import Meter, Result
from benchmarks.wire import Address, Connection, publication

if TYPE_CHECKING:
    from benchmarks.brokers import Broker

WARM_UP_MESSAGES = 200
MOST_MESSAGES = 20_000
PAUSE_SECONDS = 0.001
BODY = bytes(BODY_SIZE)


def round_trip(broker: Broker, address: Address, seconds: float) -> Result:
    """The median and the 99th percentile, in milliseconds, of transient messages without acks, and what gRPC takes."""
    with declared(address, Load()) as destination:
        consumer, producer = Connection(address), Connection(address)
        try:
            consumer.consume(destination.queues[0], prefetch=0)
            message = publication("", destination.queues[0], BODY, persistent=False)
            brokered = Meter(broker.processes())
            times = _measure(producer, consumer, message, seconds)
        finally:
            consumer.close()
            producer.close()
    measured = sorted(times[WARM_UP_MESSAGES:])
    figures = {
        "median ms": statistics.median(measured) * 1e3,
        "p99 ms": measured[int(len(measured) * 0.99)] * 1e3,
    }
    return Result(figures, None, brokered.per_million(len(times)), {"a bare gRPC echo, median ms": echo()})


def _measure(producer: Connection, consumer: Connection, message: bytes, seconds: float) -> list[float]:
    times: list[float] = []
    buffer = memoryview(bytearray(65536))
    layout: Layout | None = None
    deadline = time.monotonic() + seconds
    while len(times) < WARM_UP_MESSAGES + 100 or (time.monotonic() < deadline and len(times) < MOST_MESSAGES):
        # Without a pause the broker would not be idle but in a tight loop with this process.
        time.sleep(PAUSE_SECONDS)
        started = time.perf_counter()
        producer.socket.sendall(message)
        size = 0
        while not layout or size < layout.length:
            received = consumer.socket.recv_into(buffer[size:])
            if not received:
                raise BenchmarkError("the broker closed the consumer's connection")
            size += received
            layout = layout or learn(buffer[:size])
        times.append(time.perf_counter() - started)
        if layout.verify(buffer[:size], 0, len(times)) != BODY:
            raise BenchmarkError(f"delivery {len(times)} has another body than was sent")
    return times
