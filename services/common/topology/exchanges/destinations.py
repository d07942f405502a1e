"""Where several bindings may lead to one destination: it stays until the last of them is gone."""

from __future__ import annotations

from services.common.topology.exchanges.exchange_type import Destination


class Destinations(dict[Destination, int]):
    """Destinations, each with the number of bindings that lead to it."""

    __slots__ = ()

    def add(self, destination: Destination) -> None:
        """One binding more leads there."""
        self[destination] = self.get(destination, 0) + 1

    def drop(self, destination: Destination) -> None:
        """One binding less leads there; raises KeyError when none does."""
        if self[destination] == 1:
            del self[destination]
        else:
            self[destination] -= 1
