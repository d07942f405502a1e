"""Who gets it."""

from __future__ import annotations

from typing import Protocol

from services.queue.machine.arrival import Arrival
from services.queue.machine.entry import Entry


class Delivery(Protocol):
    """From the messages of a queue to its consumers.

    `chooses`: whether what is ready may stay though there is a consumer with credit. `unfinished`: whether there was
    more to look at than goes in one turn.
    """

    @property
    def chooses(self) -> bool: ...

    @property
    def unfinished(self) -> bool: ...

    @property
    def serves(self) -> bool:
        """Whether something that is ready would leave at once."""

    def direct(self, arrival: Arrival) -> int:
        """Delivers past the list what consumers can take at once; gives how many, the rest goes by the list."""

    def from_list(self, now: int, expired: list[Entry]) -> None:
        """Delivers from the list what can be; `expired` gets those past their time that were in the way."""

    def go_on(self) -> None:
        """Another turn: what was unfinished may be gone on with."""
