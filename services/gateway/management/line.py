"""Requests of one client that wait for their turn: they are carried out one after the other, as they came.

All lines of a gateway share one room.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from services.gateway.management.forms import Form, Requester

MOST: Final = 100
"""That wait at once, of one client."""
BYTES: Final = 4 << 20
"""Of all of them."""
LARGEST: Final = 1 << 20
"""Bytes of one, which is answered that it is too large."""
MOST_OF_ALL: Final = 2000
"""Requests of all clients of a gateway, those that are answered among them."""
BYTES_OF_ALL: Final = 32 << 20
"""Of all of them."""


class Waiting(NamedTuple):
    """A request as it came; of one that is `too_large` no more is kept than who asks, of `asks` bytes at most."""

    format: str
    form: Form
    requester: Requester
    properties: bytes
    body: bytes
    too_large: bool = False
    asks: int = 0

    @property
    def weight(self) -> int:
        """Bytes of memory, about."""
        return len(self.properties) + len(self.body) + self.asks


@dataclass(slots=True)
class Room:
    """What requests of all clients of a gateway take."""

    requests: int = 0
    weight: int = 0

    def has_for(self, waiting: Waiting) -> bool:
        """One more."""
        return self.requests < MOST_OF_ALL and self.weight + waiting.weight <= BYTES_OF_ALL

    def take(self, requests: int, weight: int) -> None:
        """For so many, of so many bytes; negative: they are done."""
        self.requests += requests
        self.weight += weight


@dataclass(slots=True)
class Line:
    """Of one connection."""

    room: Room
    weight: int = 0
    begun: int = 0
    """Requests that had their turn."""
    waiting: deque[Waiting] = field(default_factory=deque)

    def add(self, waiting: Waiting) -> bool:
        """False when there is no room."""
        if len(self.waiting) >= MOST or self.weight + waiting.weight > BYTES or not self.room.has_for(waiting):
            return False
        self.room.take(1, waiting.weight)
        self.weight += waiting.weight
        self.waiting.append(waiting)
        return True

    def next(self) -> Waiting:
        """The one that has waited longest; it keeps its room until it is done."""
        found = self.waiting.popleft()
        self.weight -= found.weight
        self.begun += 1
        return found

    def done(self, waiting: Waiting) -> None:
        """It had its turn, and its answer."""
        self.room.take(-1, -waiting.weight)

    def clear(self) -> int:
        """Drops all that wait: how many."""
        dropped = len(self.waiting)
        self.room.take(-dropped, -self.weight)
        self.waiting.clear()
        self.weight = 0
        return dropped


def waiting_of(message_format: str, form: Form, requester: Requester, properties: bytes, body: bytes) -> Waiting:
    """Of a message."""
    if len(properties) + len(body) > LARGEST:
        return Waiting(message_format, form, requester, b"", b"", too_large=True, asks=len(properties))
    return Waiting(message_format, form, requester, properties, body)
