"""Who gets it."""

from __future__ import annotations

from typing import Protocol

from services.queue.machine.arrival import Arrival
from services.queue.machine.entry import Entry


class Delivery(Protocol):
    """From the messages of a queue to its consumers."""

    def direct(self, arrival: Arrival) -> int:
        """Delivers past the list what consumers can take at once; gives how many, the rest goes by the list."""

    def from_list(self, now: int, expired: list[Entry]) -> None:
        """Delivers from the list what can be; `expired` gets those past their time that were in the way."""
