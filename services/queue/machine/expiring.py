"""What expires of a queue by itself: it may stand anywhere, with others before it that go later, or never.

Where all live as long as their queue says, and leave in the order of their arrival, the first in the list is the next
that expires: nothing is kept here for those.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Final, TypeAlias

from services.queue.machine import turn
from services.queue.machine.entry import AVAILABLE, Entry

_STEPS: Final = 4  # that a sweep makes for each that comes
_SPARE_BYTES: Final = 1 << 20  # of what has left and is remembered, at most, besides as much as waits

_Row: TypeAlias = tuple[int, int, Entry]


class Expiring:
    """Those of one queue, by their times. `some`: whether there are any, or may be.

    What has left is in here until it is swept out, bit by bit: a heap that loses its last row is a heap yet, so a sweep
    takes rows from the end of the one and puts those that wait into another.
    """

    __slots__ = ("_by_arrival", "_heap", "_known", "_size", "_swept", "some")

    def __init__(self, *, by_arrival: bool) -> None:
        """`by_arrival`: the queue's entries leave in the order in which they came."""
        self._by_arrival = by_arrival
        self._heap: list[_Row] = []
        self._swept: list[_Row] = []
        self._known: set[Entry] = set()
        self._size = 0
        self.some = False

    def expects(self, *, own: bool) -> None:
        """Entries come that expire; `own`: some have a time of their own, not just that of their queue."""
        self.some = self.some or own or not self._by_arrival

    def add(self, entries: Iterable[Entry], count: int, size: int) -> None:
        """They wait from now on, or again; `count` of `size` bytes do."""
        for entry in entries:
            if entry.expires and entry not in self._known and self._goes_alone(entry):
                self._known.add(entry)
                self._size += entry.message.weight
                heappush(self._heap, (entry.expires, entry.position, entry))
                self._sweep(_STEPS, count, size)

    def _goes_alone(self, entry: Entry) -> bool:
        return not self._by_arrival or entry.message.facts.ttl_ms is not None

    @property
    def next(self) -> int:
        """When the first one does (Unix ms), or 0; perhaps it has left meanwhile."""
        return min([heap[0][0] for heap in (self._heap, self._swept) if heap], default=0)

    def overdue(self, now: int) -> list[Entry]:
        """Those past their time that wait yet, as many as go in one turn: they are out of here, not of their list."""
        found: list[Entry] = []
        for _ in range(turn.SCATTERED):
            swept, heap = self._swept, self._heap
            if swept and not (heap and heap[0] < swept[0]):
                heap = swept
            if not heap or heap[0][0] > now:
                break
            entry = self._forget(heappop(heap))
            if entry.state == AVAILABLE:
                found.append(entry)
        return found

    def tidy(self, count: int, size: int) -> bool:
        """Sweeps out what has left, where that is much, as goes in one turn; whether there is more of it."""
        if self._known:
            self._sweep(turn.SCATTERED, count, size)
        return self._too_much(count, size)

    def _too_much(self, count: int, size: int) -> bool:
        return len(self._known) > 2 * count or self._size > 2 * size + _SPARE_BYTES

    def _sweep(self, steps: int, count: int, size: int) -> None:
        for _ in range(steps):
            if not self._swept:
                if not self._heap or not self._too_much(count, size):
                    return
                self._heap, self._swept = self._swept, self._heap
            row = self._swept.pop()
            if row[2].state == AVAILABLE:
                heappush(self._heap, row)
            else:
                self._forget(row)

    def _forget(self, row: _Row) -> Entry:
        entry = row[2]
        self._known.remove(entry)
        self._size -= entry.message.weight
        return entry
