"""Messages that wait as they came, in columns: no object is made for any of them before somebody looks at it.

For those of which nothing has to be known one by one: transient ones that do not expire, and go to one queue.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat
from operator import add
from typing import TYPE_CHECKING

from services.common.message.alike import are_alike
from services.common.message.weight import weight
from services.queue.machine.entry import Entry
from services.queue.machine.message import Message

if TYPE_CHECKING:
    from services.common.message.facts import Facts
    from services.queue.machine.arrival import Arrival
    from services.queue.machine.body import Body


class Parcel:
    """`first` is the index of the first that waits, `position` that of the message at index 0."""

    __slots__ = ("_time_ms", "bodies", "facts", "first", "position", "properties", "uids")

    def __init__(self, arrival: Arrival, first: int, end: int, position: int) -> None:
        """Of messages `first` to `end - 1`; nothing else of what came with them is kept."""
        own = slice(first, end)
        self._time_ms = arrival.time_ms
        self.uids: Sequence[int] = arrival.uids[own]
        self.facts: Sequence[Facts] = arrival.facts[own]
        self.properties: Sequence[bytes] = arrival.properties[own]
        self.bodies: Sequence[Body] = arrival.bodies[own]
        self.position = position
        self.first = 0

    def __len__(self) -> int:
        """How many wait."""
        return len(self.bodies) - self.first

    def end_of(self, limit: int, size: int) -> int:
        """The index behind the first ones that are `limit`, or that weigh `size`."""
        first, end = self.first, min(self.first + limit, len(self.bodies))
        properties, bodies = self.properties[first:end], self.bodies[first:end]
        if weight(properties, bodies) <= size:
            return end
        sums = list(accumulate(map(add, map(len, properties), map(len, bodies))))
        return first + 1 + bisect_left(sums, size)

    def span(self, first: int, end: int, step: int = 1) -> Sequence[int]:
        """As Arrival says."""
        uids = self.uids
        lowest, highest = uids[first], uids[end - 1]
        return range(lowest, highest + 1, step) if highest - lowest == end - 1 - first else uids[first:end:step]

    def sizes(self, end: int) -> tuple[int, int]:
        """Of those that wait before an index: bytes of bodies, and of all that is in memory, as Message.kept says."""
        own = slice(self.first, end)
        facts, bodies = self.facts[own], self.bodies[own]
        keys = len(facts[0].routing_key) * len(facts) if are_alike(facts) else sum(len(of.routing_key) for of in facts)
        return sum(map(len, bodies)), weight(self.properties[own], bodies) + keys

    def taken(self, end: int) -> None:
        """Those before an index are gone; before long nothing of them is in memory."""
        self.first = end
        if 2 * end > len(self.bodies):
            self._drop(end)

    def _drop(self, count: int) -> None:
        self.uids, self.facts = self.uids[count:], self.facts[count:]
        self.properties, self.bodies = self.properties[count:], self.bodies[count:]
        self.position += count
        self.first = 0

    def entries(self) -> list[Entry]:
        """Those that wait."""
        if self.first:
            self._drop(self.first)
        columns = self.uids, self.facts, self.properties, self.bodies
        messages = list(map(Message, *columns, repeat(self._time_ms)))
        for message in messages:
            message.references = 1
        return list(map(Entry, messages, range(self.position, self.position + len(messages))))


class Bundle:
    """Entries behind parcels: they wait as these do."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = list(entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def uids(self) -> Sequence[int]:
        """Of those that are still in it."""
        return [entry.message.uid for entry in self._entries]

    def entries(self) -> list[Entry]:
        """All of them, also those that were withdrawn."""
        return self._entries
