"""What is told of single exchanges and connections, where the settings want that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from services.common.metrics.catalogue import messages as m
from services.common.metrics.each import MOST, CountedEach, counted_connections, counted_exchanges

if TYPE_CHECKING:
    from services.common.config import Settings
    from services.common.metrics.instrument import Instrument
    from services.common.metrics.meters import Labels, Meters
    from services.gateway.connections.connection import Connection
    from services.gateway.connections.listener import Listener

_HELD: Final[dict[Instrument, Callable[[Connection], int]]] = {
    m.CONNECTION_SESSIONS: lambda each: len(each.sessions),
    m.CONNECTION_CONSUMERS: lambda each: sum(len(session.consumers) for session in each.sessions.values()),
    m.CONNECTION_UNSETTLED: lambda each: sum(len(session.numbers) for session in each.sessions.values()),
}


class Apart:
    """Of one gateway. What is gone is forgotten with the next reading; until then there are MOST of each at most."""

    def __init__(self, meters: Meters, settings: Settings, is_exchange: Callable[[str, str], bool]) -> None:
        """`is_exchange` tells whether there may be one of that name in a virtual host."""
        self._meters = meters
        self._is_exchange = is_exchange
        self._wanted = settings.metrics_connections
        counts = settings.metrics
        self._exchanges = counted_exchanges(meters) if counts and settings.metrics_exchanges else None
        self._connections = counted_connections(meters) if counts and settings.metrics_connections else None

    @property
    def counted(self) -> list[CountedEach]:
        """For CountedStages."""
        return [each for each in (self._exchanges, self._connections) if each is not None]

    def measure(self, listener: Listener) -> None:
        """Connections are there from now on."""

        async def forget() -> None:
            if self._exchanges is not None:
                self._exchanges.keep(lambda labels: self._is_exchange(labels[0], labels[1]))
            if self._connections is not None:
                self._connections.keep({_labels(each) for each in listener.connections}.__contains__)

        self._meters.surveys.append(forget)
        for instrument, held in _HELD.items() if self._wanted else ():
            self._meters.read(instrument, _reader(listener, held))


def _labels(connection: Connection) -> Labels:
    return connection.virtual_host, connection.name


def _reader(listener: Listener, held: Callable[[Connection], int]) -> Callable[[], Iterator[tuple[Labels, float]]]:
    def read() -> Iterator[tuple[Labels, float]]:
        there = (each for each in list(listener.connections) if each.virtual_host and not each.lost)
        for each in islice(there, MOST):
            yield _labels(each), held(each)

    return read
