"""What a client waits for that does one thing after the other: confirms, transactions, gets."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from benchmarks.confirms import Confirms
from benchmarks.load import BODY_SIZE, Load, declared
from benchmarks.result import Meter, Result
from benchmarks.wire import Address, Connection, publication, short

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.brokers import Broker

WARM_UP = 50
LEAST = 100
GETS = 5000
"""Messages that wait to be taken one at a time."""
BODY = bytes(BODY_SIZE)


def confirm(broker: Broker, address: Address, seconds: float, *, persistent: bool) -> Result:
    """Milliseconds from a publish to its confirm; nothing else is under way."""
    with declared(address, Load(persistent=persistent)) as destination:
        connection = Connection(address)
        connection.confirm_publishes()
        message = publication("", destination.queues[0], BODY, persistent=persistent)

        def publish() -> None:
            connection.socket.sendall(message)
            connection.expect(60, 80)

        return _measured(publish, connection, broker, seconds)


def transaction(broker: Broker, address: Address, seconds: float) -> Result:
    """Milliseconds from a publish and tx.commit to tx.commit-ok."""
    with declared(address, Load(persistent=True)) as destination:
        connection = Connection(address)
        connection.call(90, 10, b"")
        message = publication("", destination.queues[0], BODY, persistent=True)

        def commit() -> None:
            connection.socket.sendall(message)
            connection.call(90, 20, b"")

        return _measured(commit, connection, broker, seconds)


def get(broker: Broker, address: Address, seconds: float) -> Result:
    """Milliseconds from basic.get, without acknowledgement, to its message."""
    with declared(address, Load()) as destination:
        connection = Connection(address)
        connection.confirm_publishes()
        connection.socket.sendall(publication("", destination.queues[0], BODY, persistent=False) * GETS)
        confirms = Confirms()
        while confirms.count < GETS:
            confirms.receive(connection.socket.recv(1 << 16))
        question = b"\0\0" + short(destination.queues[0]) + b"\1"

        def take() -> None:
            connection.call(60, 70, question)
            connection.skip_content()

        return _measured(take, connection, broker, seconds, GETS)


def _measured(
    once: Callable[[], None], connection: Connection, broker: Broker, seconds: float, most: int = 1 << 40
) -> Result:
    times: list[float] = []
    brokered = Meter(broker.processes())
    deadline = time.monotonic() + seconds
    while len(times) < most and (len(times) < WARM_UP + LEAST or time.monotonic() < deadline):
        started = time.perf_counter()
        once()
        times.append(time.perf_counter() - started)
    connection.close()
    measured = sorted(times[WARM_UP:])
    figures = {"median ms": statistics.median(measured) * 1e3, "p99 ms": measured[int(len(measured) * 0.99)] * 1e3}
    return Result(figures, None, brokered.per_million(len(times)))
