"""Asks for pages of the list of queues, each sorted by another statistic, at a steady rate."""

from __future__ import annotations

import base64
import http.client
import threading
import time
from itertools import cycle
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from benchmarks.failure import BenchmarkError
from services.mgmt.model.queue import Queue

if TYPE_CHECKING:
    from benchmarks.wire import Address

SIZE: Final = 100
RABBITMQ, BROKERJ = "RabbitMQ's", "Broker-J's"
_COLUMNS: Final = ("messages", "messages_ready", "messages_unacknowledged", "memory", "consumers")
_LATE: Final = 20.0  # seconds


def paths() -> list[tuple[str, str]]:
    """By whose API, and what: both in turns, each by all its statistics."""
    theirs = cycle(f"/api/queues?page=1&page_size={SIZE}&sort={name}&sort_reverse=true" for name in _COLUMNS)
    names = Queue.statistics
    ours = [f"/api/latest/queue?limit={SIZE}&orderBy={quote(f'{name} desc')}" for name in names]
    return [each for path in ours for each in ((BROKERJ, path), (RABBITMQ, next(theirs)))]


class Client:
    """One connection to management. Raises BenchmarkError for any answer but 200."""

    def __init__(self, address: Address, port: int) -> None:
        self._connection = http.client.HTTPConnection(address.host, port, timeout=_LATE)
        login = base64.b64encode(f"{address.user}:{address.password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {login}"}

    def get(self, path: str) -> bytes:
        """The body."""
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != http.client.OK:
            raise BenchmarkError(f"{path}: {answer.status} {body[:200]!r}")
        return body


class Asking(threading.Thread):
    """Until it is told to stop: so many times a second, or as often as answers come where that is less."""

    def __init__(self, client: Client, per_second: float) -> None:
        super().__init__()
        self._client, self._every = client, 1 / per_second
        self._over = threading.Event()
        self._fault: Exception | None = None
        self.times: dict[str, list[float]] = {RABBITMQ: [], BROKERJ: []}
        """Seconds, by whose API."""

    def run(self) -> None:
        due, asked = time.monotonic(), cycle(paths())
        try:
            while not self._over.wait(max(0.0, due - time.monotonic())):
                whose, path = next(asked)
                began = time.monotonic()
                self._client.get(path)
                self.times[whose].append(time.monotonic() - began)
                due = max(due + self._every, began)
        except (OSError, http.client.HTTPException, BenchmarkError) as fault:
            self._fault = fault

    def stop(self) -> None:
        """Raises BenchmarkError where an answer was none."""
        self._over.set()
        self.join()
        if self._fault:
            raise BenchmarkError(f"asking for pages: {self._fault}") from self._fault
