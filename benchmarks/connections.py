"""Connections that are opened, used once and closed, by clients that do nothing else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.brokers.processes import proportional_memory
from benchmarks.counters import Counter, Counters, shared
from benchmarks.load import BODY_SIZE, Load, declared
from benchmarks.result import Meter, Result
from benchmarks.wire import Address, Connection, publication
from benchmarks.workers import workers

if TYPE_CHECKING:
    from benchmarks.brokers import Broker

CLIENTS = 4
WARM_UP_SECONDS = 1.0


def connections(broker: Broker, address: Address, seconds: float) -> Result:
    """How many a second: each publishes a message, waits for its confirm, gets one, and says goodbye."""
    counters = [shared() for _ in range(CLIENTS)]
    pids = broker.processes()
    with declared(address, Load()) as destination, workers() as generator:
        for each in counters:
            generator.start(_come_and_go, address, destination.queues[0], each)
        generator.sleep(WARM_UP_SECONDS)
        generated, brokered, memory = Meter(generator.pids), Meter(pids), proportional_memory(pids)
        started, before = time.monotonic(), _opened(counters)
        generator.sleep(seconds)
        count, elapsed = _opened(counters) - before, time.monotonic() - started
        generated_cpu, brokered_cpu = generated.per_million(count), brokered.per_million(count)
        for each in counters:
            each[Counter.STOP] = 1
        generator.join()
        kept = (proportional_memory(pids) - memory) / count if pids else 0.0
    return Result({"connections/s": count / elapsed}, generated_cpu, brokered_cpu, {"bytes each, kept": kept})


def _opened(counters: list[Counters]) -> int:
    return sum(each[Counter.OPENED] for each in counters)


def _come_and_go(address: Address, queue: str, counters: Counters) -> None:
    message = publication("", queue, bytes(BODY_SIZE), persistent=False)
    while not counters[Counter.STOP]:
        connection = Connection(address)
        connection.confirm_publishes()
        connection.publish_and_get(message, queue)
        connection.close_in_order()
        counters[Counter.OPENED] += 1
