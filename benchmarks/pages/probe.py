"""How old statistics are: a queue that grows at known times, and what management says of it."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Final

from benchmarks.pages.asking import Client
from benchmarks.wire import Address, Connection, publication

if TYPE_CHECKING:
    from collections.abc import Sequence

QUEUE: Final = "probe"
EVERY_SECONDS: Final = 0.1
_PER_LOOK: Final = 5
_LOOK: Final = f"/api/queues/%2F/{QUEUE}?columns=messages"


def age(published: Sequence[float], there: int, now: float) -> float:
    """At most so old is what says that so many are `there`: those after them were published since."""
    return now - published[there - 1] if there else now - published[0]


class Probe(threading.Thread):
    """Until it is told to stop."""

    def __init__(self, address: Address, client: Client) -> None:
        super().__init__()
        self._client = client
        self._over = threading.Event()
        self._connection = Connection(address)
        self._connection.declare_queue(QUEUE, durable=False)
        self._connection.confirm_publishes()
        self._published = list[float]()
        self.ages = list[float]()

    def run(self) -> None:
        message = publication("", QUEUE, b"", persistent=False)
        while not self._over.wait(EVERY_SECONDS):
            self._connection.socket.sendall(message)
            self._connection.expect(60, 80)
            self._published.append(time.monotonic())
            if not len(self._published) % _PER_LOOK:
                self._look()

    def _look(self) -> None:
        there = json.loads(self._client.get(_LOOK)).get("messages", 0)
        self.ages.append(age(self._published, there, time.monotonic()))

    def stop(self) -> None:
        """And deletes its queue."""
        self._over.set()
        self.join()
        self._connection.delete_queue(QUEUE)
        self._connection.close()
