"""Requests of one client that wait for their turn: they are carried out one after the other, as they came.

All lines of a gateway share one room, in which users have fair shares.
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
class Taken:
    """What requests take."""

    requests: int = 0
    weight: int = 0

    def add(self, requests: int, weight: int) -> None:
        """For so many more, of so many bytes; negative: they are done."""
        self.requests += requests
        self.weight += weight


class Room:
    """What requests of all clients of a gateway take.

    No user has more of it than is left for others: one alone has half, each of two a third. So there is always room for
    the next, however many connections one user has.
    """

    def __init__(self) -> None:
        self.all = Taken()
        self._of: dict[str, Taken] = {}  # by user

    def has_for(self, whose: str, requests: int, weight: int) -> bool:
        """Whether a user may have so many more, of so many bytes in all."""
        own = self._of.get(whose, _NOTHING)
        free, free_bytes = MOST_OF_ALL - self.all.requests, BYTES_OF_ALL - self.all.weight
        return own.requests + requests <= free and own.weight + weight <= free_bytes

    def take(self, whose: str, requests: int, weight: int) -> None:
        """For so many of a user, of so many bytes; negative: they are done."""
        own = self._of.setdefault(whose, Taken())
        for each in (own, self.all):
            each.add(requests, weight)
        if not own.requests:
            del self._of[whose]


_NOTHING: Final = Taken()


@dataclass(slots=True)
class Line:
    """Of one connection, of a user."""

    room: Room
    whose: str
    weight: int = 0
    begun: int = 0
    """Requests that had their turn."""
    waiting: deque[Waiting] = field(default_factory=deque)

    def add(self, waiting: Waiting) -> bool:
        """False when there is no room."""
        is_full = len(self.waiting) >= MOST or self.weight + waiting.weight > BYTES
        if is_full or not self.room.has_for(self.whose, 1, waiting.weight):
            return False
        self.room.take(self.whose, 1, waiting.weight)
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
        self.room.take(self.whose, -1, -waiting.weight)

    def clear(self) -> int:
        """Drops all that wait: how many."""
        dropped = len(self.waiting)
        self.room.take(self.whose, -dropped, -self.weight)
        self.waiting.clear()
        self.weight = 0
        return dropped


def waiting_of(message_format: str, form: Form, requester: Requester, properties: bytes, body: bytes) -> Waiting:
    """Of a message."""
    if len(properties) + len(body) > LARGEST:
        return Waiting(message_format, form, requester, b"", b"", too_large=True, asks=len(properties))
    return Waiting(message_format, form, requester, properties, body)
