"""Latency at a given rate: every body starts with the moment at which it was sent, or should have been."""

from __future__ import annotations

import multiprocessing
import struct
import time
from array import array
from typing import TYPE_CHECKING

from benchmarks.confirms import Confirms
from benchmarks.counters import Counter, Counters, shared
from benchmarks.delivery import Layout, learn
from benchmarks.failure import BenchmarkError
from benchmarks.load import BODY_SIZE, PREFETCH, Destination, Load, declared
from benchmarks.result import Meter, Result
from benchmarks.wire import TIMEOUT_SECONDS, Address, Connection, acknowledge, publication
from benchmarks.workers import workers

if TYPE_CHECKING:
    from multiprocessing.connection import Connection as Pipe

    from benchmarks.brokers import Broker

TICK_SECONDS = 0.001
WARM_UP_SECONDS = 1.0
ACK_EVERY = 100
BUFFER_BYTES = 1 << 20
LOAD = Load(confirms=True, acks=True)
_STAMP = struct.Struct(">Q")


def latency(rate: float, broker: Broker, address: Address, seconds: float) -> Result:
    """Percentiles in milliseconds of transient messages with confirms and acks at `rate` messages per second."""
    total = int(rate * (seconds + WARM_UP_SECONDS))
    counters = shared()
    reader, writer = multiprocessing.Pipe(duplex=False)
    with declared(address, LOAD) as destination, workers() as generator:
        generator.start(_consume, destination, counters, total, writer)
        generator.wait_for(lambda: counters[Counter.CONSUMER_READY], "starting the consumer")
        generator.start(_produce, destination, counters, total, rate)
        generator.wait_for(lambda: counters[Counter.CONSUMED], "the first delivery")
        generated, brokered = Meter(generator.pids), Meter(broker.processes())
        while not reader.poll(0.1):
            generator.check()
        # Read before the processes end: their CPU time goes with them.
        generated_cpu, brokered_cpu = generated.per_million(total), brokered.per_million(total)
        latencies = array("Q", reader.recv_bytes())
        generator.join()
    measured = sorted(latencies[int(rate * WARM_UP_SECONDS) :])
    return Result(_percentiles(measured), generated_cpu, brokered_cpu, {"rate": rate})


def _percentiles(nanoseconds: list[int]) -> dict[str, float]:
    last = len(nanoseconds) - 1
    return {
        f"p{percent:g} ms": nanoseconds[min(last, int(len(nanoseconds) * percent / 100))] / 1e6
        for percent in (50, 99, 99.9)
    }


def _produce(destination: Destination, counters: Counters, total: int, rate: float) -> None:
    """Sends what is due once a tick. A tick missed because the broker did not read keeps its own moment as stamp."""
    head, tail = _message_around_stamp(destination)
    connection = Connection(destination.address)
    connection.confirm_publishes()
    confirms = Confirms()
    started = time.monotonic()
    sent = ticks = 0
    while sent < total:
        ticks += 1
        blocked_until = time.monotonic()
        scheduled = started + ticks * TICK_SECONDS
        if (pause := scheduled - blocked_until) > 0:
            time.sleep(pause)
        stamp = time.monotonic_ns() if pause > 0 else int(scheduled * 1e9)
        due = min(total, int(ticks * TICK_SECONDS * rate)) - sent
        connection.socket.sendall((head + _STAMP.pack(stamp) + tail) * due)
        sent += due
        _take_confirms(connection, confirms, blocking=False)
        counters[Counter.PUBLISHED] = sent
    while confirms.count < total:
        _take_confirms(connection, confirms, blocking=True)
    counters[Counter.FINISHED] = 1


def _message_around_stamp(destination: Destination) -> tuple[bytes, bytes]:
    marker = b"\xfe" * _STAMP.size
    body = marker + bytes(BODY_SIZE - _STAMP.size)
    message = publication(destination.exchange, destination.routing_key(0), body, persistent=False)
    head, _, tail = message.partition(marker)
    return head, tail


def _take_confirms(connection: Connection, confirms: Confirms, *, blocking: bool) -> None:
    connection.socket.settimeout(TIMEOUT_SECONDS if blocking else 0)
    try:
        confirms.receive(connection.socket.recv(65536))
    except BlockingIOError:
        pass
    finally:
        connection.socket.settimeout(TIMEOUT_SECONDS)


def _consume(destination: Destination, counters: Counters, total: int, results: Pipe) -> None:
    connection = Connection(destination.address)
    connection.consume(destination.queues[0], prefetch=PREFETCH)
    counters[Counter.CONSUMER_READY] = 1
    latencies = array("Q")
    rest = connection.leftover()
    buffer = bytearray(BUFFER_BYTES)
    layout: Layout | None = None
    acked = 0
    while len(latencies) < total:
        size = connection.socket.recv_into(buffer)
        now = time.monotonic_ns()
        if not size:
            raise BenchmarkError("the broker closed the consumer's connection")
        rest += memoryview(buffer)[:size]
        layout = layout or learn(memoryview(rest))
        if layout:
            rest = _measure(rest, layout, now, latencies)
        counters[Counter.CONSUMED] = len(latencies)
        if len(latencies) - acked >= ACK_EVERY:
            acked = len(latencies)
            connection.socket.sendall(acknowledge(acked))
    results.send_bytes(latencies.tobytes())


def _measure(data: bytes, layout: Layout, now: int, latencies: array[int]) -> bytes:
    whole = len(data) - len(data) % layout.length
    after = layout.length - layout.body_offset - _STAMP.size
    stamps = struct.Struct(f">{layout.body_offset}xQ{after}x").iter_unpack(memoryview(data)[:whole])
    latencies.extend([now - stamp for (stamp,) in stamps])
    return data[whole:]
