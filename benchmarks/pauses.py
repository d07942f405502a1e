"""How long clients wait when a partition moves, and when a queue process is killed: `python -m benchmarks.pauses`.

A client publishes a message every few milliseconds with confirms, and consumes it on another connection. What is told
is the longest that a message took to arrive, and the longest that a confirm took, around each disturbance.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from select import select
from statistics import median
from struct import Struct
from typing import TYPE_CHECKING

from benchmarks.brokers.hopline import Hopline
from benchmarks.confirms import Confirms
from benchmarks.delivery import Layout, learn
from benchmarks.disturbances import Disturbances
from benchmarks.failure import BenchmarkError
from benchmarks.load import BODY_SIZE
from benchmarks.session import OUT
from benchmarks.wire import Address, Connection, acknowledge, publication

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY_SECONDS = 0.005
BEFORE_SECONDS = 1.0
AFTER_SECONDS = 1.0
MOST_SECONDS = 120.0
PREFETCH = 5000
_TIME = Struct(">d")


@dataclass(frozen=True, slots=True)
class Pause:
    """The longest waits around one disturbance, in milliseconds."""

    delivery: float
    confirm: float


class Client:
    """Publishes to one queue and consumes from it, with acknowledgements and confirms."""

    def __init__(self, address: Address, queue: str, *, persistent: bool) -> None:
        self._queue = queue
        self._persistent = persistent
        self._publishing, self._consuming = Connection(address), Connection(address)
        self._publishing.declare_queue(queue, durable=persistent)
        self._publishing.confirm_publishes()
        self._consuming.consume(queue, prefetch=PREFETCH)
        self._confirms = Confirms()
        self._unconfirmed: deque[float] = deque()  # when they were sent
        self._confirmed = 0
        self._delivered = 0
        self._layout: Layout | None = None
        self._received = bytearray(self._consuming.leftover())
        self._longest_delivery = self._longest_confirm = 0.0

    def during(self, disturb: Callable[[], None]) -> Pause:
        """The longest waits from a while before `disturb` to a while after it."""
        self._longest_delivery = self._longest_confirm = 0.0
        self._run(BEFORE_SECONDS)
        disturbing = threading.Thread(target=disturb)
        disturbing.start()
        while disturbing.is_alive():
            self._run(EVERY_SECONDS)
        ended = time.monotonic()
        self._run(AFTER_SECONDS)
        while self._unconfirmed and self._unconfirmed[0] < ended:  # or the longest wait of all would not count
            if time.monotonic() > ended + MOST_SECONDS:
                raise BenchmarkError("publishes are still not confirmed")
            self._run(EVERY_SECONDS)
        return Pause(self._longest_delivery * 1e3, self._longest_confirm * 1e3)

    def close(self) -> None:
        """Ends both connections."""
        self._publishing.close()
        self._consuming.close()

    def _run(self, seconds: float) -> None:
        sockets = [self._publishing.socket, self._consuming.socket]
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            self._publish(now)
            while (left := now + EVERY_SECONDS - time.monotonic()) > 0:
                for ready in select(sockets, [], [], left)[0]:
                    if ready is self._publishing.socket:
                        self._take_confirms()
                    else:
                        self._take_deliveries()

    def _publish(self, now: float) -> None:
        body = _TIME.pack(now).ljust(BODY_SIZE, b"\0")
        self._unconfirmed.append(now)
        self._publishing.socket.sendall(publication("", self._queue, body, persistent=self._persistent))

    def _take_confirms(self) -> None:
        self._confirms.receive(_read(self._publishing))
        now = time.monotonic()
        while self._confirmed < self._confirms.count:
            self._confirmed += 1
            self._longest_confirm = max(self._longest_confirm, now - self._unconfirmed.popleft())

    def _take_deliveries(self) -> None:
        self._received += _read(self._consuming)
        now = time.monotonic()
        self._layout = self._layout or learn(memoryview(bytes(self._received)))
        while self._layout and len(self._received) >= self._layout.length:
            (sent,) = _TIME.unpack_from(self._received, self._layout.body_offset)
            self._longest_delivery = max(self._longest_delivery, now - sent)
            del self._received[: self._layout.length]
            self._delivered += 1
        self._consuming.socket.sendall(acknowledge(self._delivered))


def _read(connection: Connection) -> bytes:
    data = connection.socket.recv(1 << 16)
    if not data:
        raise BenchmarkError("the broker closed a connection")
    return data


def main(moves: int, kills: int) -> None:
    """Prints the longest waits, of transient and of persistent messages, under default settings."""
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="pauses-", dir=OUT))
    broker = Hopline()
    try:
        address = broker.start(folder)
        disturbances = Disturbances(folder / "data")
        for persistent in (False, True):
            _measure(address, disturbances, moves, kills, persistent=persistent)
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _measure(address: Address, disturbances: Disturbances, moves: int, kills: int, *, persistent: bool) -> None:
    kind = "persistent" if persistent else "transient"
    client = Client(address, kind, persistent=persistent)
    _tell(f"{kind}, partition handed over", [client.during(lambda: disturbances.move(kind)) for _ in range(moves)])
    if kills:
        _tell(f"{kind}, queue process killed", [client.during(lambda: disturbances.kill(kind)) for _ in range(kills)])
    client.close()


def _tell(what: str, pauses: list[Pause]) -> None:
    for name in ("delivery", "confirm"):
        each = [getattr(pause, name) for pause in pauses]
        print(f"{what:<34} {name:<9} median {median(each):>6,.0f} ms, worst of {len(each)} {max(each):>6,.0f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=10)
    parser.add_argument("--kills", type=int, default=3)
    arguments = parser.parse_args()
    main(arguments.moves, arguments.kills)
