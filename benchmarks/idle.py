"""Connections that do nothing but beat: what each takes of the broker's memory, and all of its processors."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.brokers.processes import cpu_seconds, proportional_memory
from benchmarks.counters import Counter, Counters, shared
from benchmarks.failure import BenchmarkError
from benchmarks.result import Result
from benchmarks.wire import FRAME_END, Address, Connection
from benchmarks.workers import workers

if TYPE_CHECKING:
    from benchmarks.brokers import Broker

CONNECTIONS = 15_000
PROCESSES = 3
HEARTBEAT = 60  # seconds, which both brokers propose
SETTLE_SECONDS = 3.0
OPENING_SECONDS = 300.0
PORTION = 50
BEAT = b"\x08\0\0\0\0\0\0" + FRAME_END


def idle(broker: Broker, address: Address, seconds: float, connections: int = CONNECTIONS) -> Result:
    """KiB of all the broker's processes for each connection, and cores that they use, as long as `seconds`."""
    pids = broker.processes()
    if not pids:
        raise BenchmarkError("memory can be measured only of a broker started here")
    Connection(address).close_in_order()  # what the first one loads is none of the others'
    before, started = proportional_memory(pids), time.monotonic()
    counters = [shared() for _ in range(PROCESSES)]
    with workers() as generator:
        for each in counters:
            generator.start(_hold, address, connections // PROCESSES, each)
        expected = connections // PROCESSES * PROCESSES
        generator.wait_for(lambda: _opened(counters) == expected, "opening them", OPENING_SECONDS)
        opened, took = _opened(counters), time.monotonic() - started
        generator.sleep(SETTLE_SECONDS)
        memory, used, since = proportional_memory(pids), cpu_seconds(pids), time.monotonic()
        generator.sleep(seconds)
        cores = (cpu_seconds(pids) - used) / (time.monotonic() - since)
        for each in counters:
            each[Counter.STOP] = 1
        generator.join()
    time.sleep(SETTLE_SECONDS)
    kept = proportional_memory(pids) - before
    return Result(
        {"KiB each": (memory - before) / opened / 1024, "cores": cores},
        notes={"opened/s": opened / took, "KiB each, kept after their end": kept / opened / 1024},
    )


def _opened(counters: list[Counters]) -> int:
    return sum(each[Counter.OPENED] for each in counters)


def _hold(address: Address, count: int, counters: Counters) -> None:
    """Beats twice as often as was agreed, a portion after the other."""
    held: list[Connection] = []
    due = time.monotonic() + HEARTBEAT / 2
    for _ in range(count):
        held.append(Connection(address, HEARTBEAT))
        counters[Counter.OPENED] = len(held)
        if time.monotonic() > due:
            _beat(held)
            due += HEARTBEAT / 2
    pause, at = HEARTBEAT / 2 * PORTION / count, 0
    while not counters[Counter.STOP]:
        _beat(held[at : at + PORTION])
        at = (at + PORTION) % count
        time.sleep(pause)
    for connection in held:
        connection.close()


def _beat(connections: list[Connection]) -> None:
    for connection in connections:
        connection.socket.sendall(BEAT)
