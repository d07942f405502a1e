"""Clients that behave, in processes of their own: one publishes a message, hears the confirm and gets the message,
again and again; one asks for health over HTTP; others sign in.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.failure import BenchmarkError
from benchmarks.load import BODY_SIZE
from benchmarks.wire import Address, Connection, publication

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection as Pipe

EVERY_SECONDS = 0.01
_SECONDS = 10.0  # for an answer over HTTP
_QUEUE = "good"
Way = Callable[["Address"], Callable[[], object]]
_Trips = list[tuple[float, float]]  # when each began, and the seconds that it took


class Good:
    """Goes round until it is stopped."""

    def __init__(self, address: Address, way: Way) -> None:
        """`way` gives one round of what the client does."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_go_round, args=(address, way, theirs), daemon=True)
        self._process.start()
        self._trips: _Trips = []

    def between(self, begin: float, end: float) -> list[float]:
        """Seconds of the round trips that began in that time (`time.monotonic`)."""
        self._pipe.send(False)
        answer = self._pipe.recv()
        if isinstance(answer, str):
            raise BenchmarkError(f"the good client failed: {answer}")
        self._trips += answer
        return [seconds for began, seconds in self._trips if begin <= began < end]

    def stop(self) -> None:
        self._process.kill()
        self._process.join()


def told(times: Sequence[float]) -> str:
    """Median, 99th percentile and worst, in milliseconds."""
    if not times:
        return "none completed"
    ordered = sorted(times)
    figures = (median(ordered), ordered[int(len(ordered) * 0.99)], ordered[-1])
    return "median {:,.1f} ms, p99 {:,.1f} ms, worst {:,.0f} ms".format(*(each * 1e3 for each in figures))


def sign_ins(address: Address, logins: Sequence[tuple[str, str]], every: float) -> list[float]:
    """Seconds that each of (user, password) takes to sign in and to have a channel."""
    times = []
    for user, password in logins:
        began = time.monotonic()
        Connection(Address(address.host, address.port, user, password)).close()
        times.append(time.monotonic() - began)
        time.sleep(max(every - times[-1], 0))
    return times


def publishes(address: Address) -> Callable[[], object]:
    """And gets what it has published."""
    connection = Connection(address)
    connection.declare_queue(_QUEUE, durable=False)
    connection.confirm_publishes()
    message = publication("", _QUEUE, bytes(BODY_SIZE), persistent=False)
    return lambda: connection.publish_and_get(message, _QUEUE)


def asks_for_health(address: Address) -> Callable[[], object]:
    """By a connection of its own each time."""

    def ask() -> None:
        connection = HTTPConnection(address.host, address.port, timeout=_SECONDS)
        try:
            connection.request("GET", "/healthz")
            status = connection.getresponse().status
        finally:
            connection.close()
        if status != HTTPStatus.OK:
            raise BenchmarkError(f"/healthz answers {status}")

    return ask


def _go_round(address: Address, way: Way, pipe: Pipe) -> None:
    trips: _Trips = []
    try:
        go_round = way(address)
        while True:
            began = time.monotonic()
            go_round()
            trips.append((began, time.monotonic() - began))
            if pipe.poll(EVERY_SECONDS):
                pipe.recv()
                pipe.send(trips)
                trips = []
    except (BenchmarkError, OSError, HTTPException) as failure:
        pipe.send(str(failure))
