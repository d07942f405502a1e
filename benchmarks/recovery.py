"""How long a store with many messages takes to be there again: `python -m benchmarks.recovery --store postgres`.

A million persistent messages wait, in one queue, and then in 64 in turn. The store process that writes is killed, and
another one takes over: a client that goes on publishing tells how long its confirms took. Then everything is killed at
once, and started again: the time until the stack says that it is ready, and until every queue has given a message, and
the processor time that all of it took, which others on the machine do not change.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import tempfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.brokers.hopline import Hopline, StoreName
from benchmarks.brokers.processes import LOOPBACK, cpu_seconds
from benchmarks.confirms import Confirms
from benchmarks.failure import BenchmarkError
from benchmarks.load import BODY_SIZE
from benchmarks.pauses import Client
from benchmarks.session import OUT
from benchmarks.wire import Address, Connection, publication

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK = 1000
_UNCONFIRMED = 20_000
_SHAPES = {"one queue": 1, "64 queues in turn": 64}
_SECONDS = 600.0


def main(store: StoreName, messages: int) -> None:
    """Prints the times for each shape."""
    OUT.mkdir(exist_ok=True)
    for shape, queues in _SHAPES.items():
        folder = Path(tempfile.mkdtemp(prefix="recovery-", dir=OUT))
        broker = Hopline(store=store, store_processes=1 if store is StoreName.sqlite else 2)
        try:
            address = broker.start(folder)
            _measure(broker, address, f"{messages:,} in {shape}", [f"waits-{n}" for n in range(queues)], messages)
        finally:
            broker.stop()
            shutil.rmtree(folder, ignore_errors=True)


def _measure(broker: Hopline, address: Address, what: str, queues: list[str], messages: int) -> None:
    _fill(address, queues, messages)
    client = Client(address, "goes-on", persistent=True)
    pause = client.during(lambda: _kill_writer(broker))
    client.close()
    print(f"{broker.name}, {what}: store killed, longest confirm {pause.confirm / 1e3:.1f} s", flush=True)
    broker.crash()
    began, before = time.monotonic(), cpu_seconds(broker.processes())
    broker.resume()
    ready = time.monotonic() - began
    _take_of_each(address, queues)
    served, spent = time.monotonic() - began, cpu_seconds(broker.processes()) - before
    print(
        f"{broker.name}, {what}: all killed, ready after {ready:.1f} s, served after {served:.1f} s, "
        f"{spent:.1f} s of processor time",
        flush=True,
    )


def _fill(address: Address, queues: list[str], messages: int) -> None:
    connection, confirms, published = Connection(address), Confirms(), 0
    for queue in queues:
        connection.declare_queue(queue, durable=True)
    connection.confirm_publishes()
    while confirms.count < messages:
        if published < messages and published - confirms.count < _UNCONFIRMED:
            connection.socket.sendall(_chunk(queues))
            published += _CHUNK
        elif data := connection.socket.recv(1 << 18):
            confirms.receive(data)
        else:
            raise BenchmarkError("the broker closed the producer's connection")
    connection.close()


def _chunk(queues: list[str]) -> bytes:
    # All different: equal bodies would be kept once by a broker that looks for them.
    bodies = [random.randbytes(BODY_SIZE) for _ in range(_CHUNK)]
    ways = [queues[number % len(queues)] for number in range(_CHUNK)]
    return b"".join([publication("", way, body, persistent=True) for way, body in zip(ways, bodies, strict=True)])


def _kill_writer(broker: Hopline) -> None:
    """Returns when a store process writes that did not before; with SQLite, the one that is started again."""
    former = _writer(broker)
    os.kill(broker.pid("-".join(former.split("-")[:2]) if former else "store"), signal.SIGKILL)
    _wait(lambda: _writer(broker) not in {"", former} if former else _is_well(broker), "another store process")


def _writer(broker: Hopline) -> str:
    return next((member for member, does in _health(broker).get("does", {}).items() if does == "writes"), "")


def _is_well(broker: Hopline) -> bool:
    return _health(broker).get("services", {}).get("store") == "ok"


def _health(broker: Hopline) -> dict[str, dict[str, str]]:
    with suppress(OSError), urllib.request.urlopen(f"http://{LOOPBACK}:{broker.http_port}/healthz", timeout=5) as said:
        return dict(json.loads(said.read()))
    return {}


def _take_of_each(address: Address, queues: list[str]) -> None:
    connection = Connection(address)
    for queue in queues:
        connection.get(queue)
    connection.close()


def _wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise BenchmarkError(f"no {what}")
        time.sleep(0.1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=StoreName, default=StoreName.sqlite, choices=list(StoreName))
    parser.add_argument("--messages", type=int, default=1_000_000)
    arguments = parser.parse_args()
    main(arguments.store, arguments.messages)
