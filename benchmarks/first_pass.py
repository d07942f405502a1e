"""The first message with each of many keys: what a broker remembers of routes does not help yet."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.delivery import Layout, learn
from benchmarks.failure import BenchmarkError
from benchmarks.load import Load, declared
from benchmarks.result import Result
from benchmarks.stream import Stream
from benchmarks.wire import NO_TABLE, Address, Connection

if TYPE_CHECKING:
    from benchmarks.brokers import Broker

KEYS = 1000


def _key(number: int) -> str:
    return f"key-{number:04}"


LOAD = Load(stream=Stream("direct", lambda _: [(_key(number), NO_TABLE) for number in range(KEYS)], _key))


def first_pass(_broker: Broker, address: Address) -> Result:
    """Messages per second from the first publish to the last delivery, one message with each key, all bound."""
    with declared(address, LOAD) as destination:
        consumer, producer = Connection(address), Connection(address)
        try:
            consumer.consume(destination.queues[0], prefetch=0)
            messages = [destination.message(0, number, LOAD.bodies[number]) for number in range(KEYS)]
            started = time.monotonic()
            producer.socket.sendall(b"".join(messages))
            _receive(consumer, KEYS)
            return Result({"messages/s": KEYS / (time.monotonic() - started)})
        finally:
            consumer.close()
            producer.close()


def _receive(consumer: Connection, count: int) -> None:
    received = bytearray(consumer.leftover())
    layout: Layout | None = None
    while layout is None or len(received) < count * layout.length:
        data = consumer.socket.recv(1 << 20)
        if not data:
            raise BenchmarkError("the broker closed the consumer's connection")
        received += data
        layout = layout or learn(memoryview(bytes(received)))
    layout.verify(memoryview(received), (count - 1) * layout.length, count)
