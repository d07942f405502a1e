"""How many queues a second one client declares, binds and deletes, each after the answer to the one before."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from benchmarks.result import Result
from benchmarks.wire import Address, Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.brokers import Broker

QUEUES = 300


def topology(_broker: Broker, address: Address) -> Result:
    """Transient queues, bound to a direct exchange, each with a key of its own."""
    connection = Connection(address)
    name = f"bench-{os.getpid()}-{os.urandom(4).hex()}"
    queues = [f"{name}-{number}" for number in range(QUEUES)]
    connection.declare_exchange(name, "direct")
    figures = {
        "declares/s": _rate(queues, lambda queue: connection.declare_queue(queue, durable=False)),
        "binds/s": _rate(queues, lambda queue: connection.bind(queue, name, queue)),
        "deletes/s": _rate(queues, connection.delete_queue),
    }
    connection.delete_exchange(name)
    connection.close()
    return Result(figures)


def _rate(queues: list[str], each: Callable[[str], None]) -> float:
    started = time.monotonic()
    for queue in queues:
        each(queue)
    return len(queues) / (time.monotonic() - started)
