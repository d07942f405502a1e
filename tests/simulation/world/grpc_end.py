"""What both ends of a gRPC connection do: items go and come until one of them is gone."""

from __future__ import annotations

from typing import Any

from tests.simulation.world.addresses import Network
from tests.simulation.world.network import Connection, Reset
from tests.simulation.world.processes import Process


class GrpcEnd:
    """One end, in `process`; `connection` is set as soon as both are there."""

    connection: Connection

    def __init__(self, process: Process, network: Network) -> None:
        self.process = process
        self._network = network
        self._lost = False

    def send(self, *item: Any) -> None:
        """To the other end, if it has one."""
        if not self._lost:
            self.connection.send(self, item)

    def arrived(self, item: Any) -> None:
        """From the other end; one that is gone says so."""
        if self._lost:
            if item is not Reset:
                self.connection.send(self, Reset)
        elif item is Reset:
            self.broken(ConnectionResetError(104, "connection reset by peer"))
        else:
            self._take(*item)

    def broken(self, failure: Exception) -> None:
        """The other end is gone."""
        if not self._lost:
            self._end(failure)

    def close(self) -> None:
        """In good order."""
        if not self._lost:
            self.connection.send(self, Reset)
            self._end(None)

    def die(self) -> None:
        """With its process."""
        self._lost = True
        self.connection.died(self, self._network.random)

    def _end(self, failure: Exception | None) -> None:
        del failure
        self._lost = True
        self.connection.ended(self)
        self.process.on_death.pop(self.die, None)

    def _take(self, kind: str, *item: Any) -> None:
        raise NotImplementedError
