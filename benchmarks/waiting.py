"""Memory with many messages waiting in a queue."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from benchmarks.brokers.processes import proportional_memory
from benchmarks.confirms import Confirms
from benchmarks.failure import BenchmarkError
from benchmarks.load import BODY_SIZE, Load, declared
from benchmarks.result import Result
from benchmarks.wire import Address, Connection, publication

if TYPE_CHECKING:
    from benchmarks.brokers import Broker

MESSAGES = 1_000_000
CHUNK_MESSAGES = 1000
UNCONFIRMED = 20_000
SETTLE_SECONDS = 3.0
MEBIBYTE = 1 << 20


def waiting(broker: Broker, address: Address, messages: int = MESSAGES) -> Result:
    """Megabytes of all the broker's processes with a million transient 256-byte messages in one queue."""
    if not broker.processes():
        raise BenchmarkError("memory can be measured only of a broker started here")
    with declared(address, Load()) as destination:
        before = proportional_memory(broker.processes())
        _publish(address, destination.queues[0], messages)
        time.sleep(SETTLE_SECONDS)
        after = proportional_memory(broker.processes())
    return Result(
        {"MiB": after / MEBIBYTE, "bytes/message": (after - before) / messages}, notes={"idle MiB": before / MEBIBYTE}
    )


def _publish(address: Address, queue: str, messages: int) -> None:
    connection = Connection(address)
    connection.confirm_publishes()
    confirms = Confirms()
    published = 0
    while confirms.count < messages:
        if published < messages and published - confirms.count < UNCONFIRMED:
            connection.socket.sendall(_chunk(queue))
            published += CHUNK_MESSAGES
            continue
        data = connection.socket.recv(1 << 18)
        if not data:
            raise BenchmarkError("the broker closed the producer's connection")
        confirms.receive(data)
    connection.close()


def _chunk(queue: str) -> bytes:
    # All different: equal bodies would be kept once by a broker that looks for them.
    bodies = [random.randbytes(BODY_SIZE) for _ in range(CHUNK_MESSAGES)]
    return b"".join([publication("", queue, body, persistent=False) for body in bodies])
