"""What expires of entries that have been looked at and stay: they may stand anywhere, with others before them."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count

from services.queue.machine import turn
from services.queue.machine.entry import AVAILABLE, Entry


class Expiring:
    """By their times. What has left meanwhile is passed over when its time comes."""

    __slots__ = ("_heap", "_number")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Entry]] = []
        self._number = count()

    def add(self, entry: Entry) -> None:
        """It stays for now."""
        if entry.expires:
            heappush(self._heap, (entry.expires, next(self._number), entry))

    @property
    def next(self) -> int:
        """When the first one does (Unix ms), or 0."""
        while self._heap and self._heap[0][2].state != AVAILABLE:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else 0

    def overdue(self, now: int) -> list[Entry]:
        """Those past their time that wait yet, as many as go in one turn."""
        found: dict[Entry, None] = {}
        while 0 < self.next <= now and len(found) < turn.AT_ONCE:
            found[heappop(self._heap)[2]] = None
        return list(found)
