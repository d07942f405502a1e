"""Messages that wait as they came, in columns: no object is made for any of them before somebody looks at it.

For those of which nothing has to be known one by one: transient ones that do not expire, and go to one queue.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from services.common.ledger.uid_ranges import span
from services.common.message.alike import are_alike
from services.common.message.weight import weight
from services.queue.machine.entry import AVAILABLE, Entry
from services.queue.machine.message import Message

if TYPE_CHECKING:
    from services.common.message.facts import Facts
    from services.queue.machine.arrival import Arrival
    from services.queue.machine.body import Body


class _Sizes(NamedTuple):
    """Bytes of bodies, of what is carried, and of all that is in memory, as Message.kept says."""

    bodies: int
    carried: int
    kept: int


_LOOK = 512  # messages that are weighed together; of more, twice as many each time
_MUCH = 256 << 10  # bytes of bodies that are kept no longer when they have gone, however many wait yet


class Parcel:
    """`first` is the index of the first that waits, `position` that of the message at index 0."""

    __slots__ = ("_behind", "_sizes", "_time_ms", "bodies", "facts", "first", "position", "properties", "uids")

    def __init__(self, arrival: Arrival, first: int, end: int, position: int) -> None:
        """Of messages `first` to `end - 1`; nothing else of what came with them is kept."""
        own = slice(first, end)
        self._time_ms = arrival.time_ms
        self.uids: Sequence[int] = arrival.uids[own]
        self.facts: Sequence[Facts] = arrival.facts[own]
        self.properties: Sequence[bytes] = arrival.properties[own]
        self.bodies: Sequence[Body] = arrival.bodies[own]
        self.position = position
        self.first = self._behind = 0
        self._sizes: _Sizes | None = None  # of all that wait, as long as it is known
        self._sizes = self.sizes(len(self.bodies))

    def __len__(self) -> int:
        """How many wait."""
        return len(self.bodies) - self.first

    def end_of(self, limit: int, size: int) -> int:
        """The index behind the first ones that are `limit`, or that weigh `size`."""
        end, last, look = self.first, min(self.first + limit, len(self.bodies)), _LOOK
        if self._sizes and last == len(self.bodies) and self._sizes.carried < size:
            return last  # most leave whole
        while end < last:
            first, end, look = end, min(end + look, last), 2 * look
            properties, bodies = self.properties[first:end], self.bodies[first:end]
            carried = weight(properties, bodies)
            if carried >= size:
                sums = list(accumulate(map(add, map(len, properties), map(len, bodies))))
                return first + 1 + bisect_left(sums, size)
            size -= carried
        return last

    def span(self, first: int, end: int) -> Sequence[int]:
        """As Arrival says."""
        return span(self.uids, first, end - first)

    def sizes(self, end: int) -> _Sizes:
        """Of those that wait before an index."""
        if self._sizes and end == len(self.bodies):
            return self._sizes
        own = slice(self.first, end)
        facts, bodies = self.facts[own], self.bodies[own]
        keys = len(facts[0].routing_key) * len(facts) if are_alike(facts) else sum(len(of.routing_key) for of in facts)
        carried = weight(self.properties[own], bodies)
        return _Sizes(sum(map(len, bodies)), carried, carried + keys)

    def taken(self, end: int, size: int) -> None:
        """Those before an index are gone, with bodies of `size`; before long nothing of them is in memory."""
        self.first, self._sizes = end, None
        self._behind += size
        if 2 * end > len(self.bodies) or self._behind > _MUCH:
            self._drop(end)

    def _drop(self, count: int) -> None:
        self.uids, self.facts = self.uids[count:], self.facts[count:]
        self.properties, self.bodies = self.properties[count:], self.bodies[count:]
        self.position += count
        self.first = self._behind = 0

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

    def add(self, entries: Iterable[Entry]) -> int:
        """They are behind these; gives how many."""
        before = len(self._entries)
        self._entries += entries
        return len(self._entries) - before

    @property
    def uids(self) -> Sequence[int]:
        """Of those that are still in it."""
        return [entry.message.uid for entry in self._entries]

    def entries(self) -> list[Entry]:
        """Those that wait: others were taken out."""
        return [entry for entry in self._entries if entry.state == AVAILABLE]

    def take_out(self, uids: set[int]) -> list[Entry]:
        """Those of these messages that wait. What stayed in it would be there twice once it had come back."""
        taken = [entry for entry in self.entries() if entry.message.uid in uids]
        self._entries = [entry for entry in self.entries() if entry.message.uid not in uids]
        return taken
