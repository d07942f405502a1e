"""Entries of a queue by a time that each has, or by anything else that stays as it is, wherever they stand."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final, TypeAlias

from services.queue.machine import turn
from services.queue.machine.entry import Entry

_STEPS: Final = 4  # that a sweep makes for each that comes
_SPARE_BYTES: Final = 1 << 20  # of what has left and is remembered, at most, besides as much as its queue keeps

_Row: TypeAlias = tuple[Any, int, int, int, Entry]
"""A time, a position, a number of its own, what the entry weighed then, the entry. Of one that was taken out a row may
be left, which counts for nothing: neither for its successor at the same position, nor for itself when it comes again.
"""
_WEIGHT: Final = 3


class ByTime:
    """What has left is in here until it is swept out, bit by bit: a heap that loses its last row is a heap yet, so a
    sweep takes rows from the end of the one, and puts those that have not left into another.
    """

    __slots__ = ("_heap", "_known", "_numbers", "_of", "_size", "_swept")

    def __init__(self, of: AbstractSet[int]) -> None:
        """`of` are the states of those that have not left."""
        self._of = of
        self._heap: list[_Row] = []
        self._swept: list[_Row] = []
        self._numbers = count()
        self._known: dict[Entry, _Row] = {}  # with its row, in the order in which they came: the same in each run
        self._size = 0

    def put(self, timed: Iterable[tuple[Any, Entry]], waiting: int, kept: int) -> None:
        """Each is in here once, for its latest time. Where `waiting` wait, in a queue that keeps so many bytes."""
        known, numbers = self._known, self._numbers
        new = [each for each in timed if (row := known.get(each[1])) is None or row[0] != each[0]]
        rows = [(time, entry.position, next(numbers), entry.message.weight, entry) for time, entry in new]
        self._size += sum([row[_WEIGHT] for row in rows])
        self._size -= sum([known[entry][_WEIGHT] for _, entry in new if entry in known])
        known.update([(row[-1], row) for row in rows])
        if len(rows) > len(self._heap):
            self._heap += rows
            heapify(self._heap)
        else:
            for row in rows:
                heappush(self._heap, row)
        self._sweep(_STEPS * len(rows), waiting, kept)

    @property
    def next(self) -> int:
        """The time of the first one, or 0; perhaps that has left meanwhile."""
        first: int = min([heap[0][0] for heap in (self._heap, self._swept) if heap], default=0)
        return first

    def due(self, now: int) -> list[Entry]:
        """Those whose time has come, and that have not left, as many as go in one turn: they are out of here now."""
        found: list[Entry] = []
        for _ in range(turn.SCATTERED):
            heap = self._earlier()
            if not heap or heap[0][0] > now:
                break
            row = heappop(heap)
            if self._counts(row):
                found.append(row[-1])
            self._forget(row)
        return found

    def first(self) -> Entry | None:
        """The first one that has not left."""
        while heap := self._earlier():
            if self._counts(heap[0]):
                return heap[0][-1]
            self._forget(heappop(heap))
        return None

    def forget(self) -> None:
        """All of them."""
        self._heap, self._swept, self._known, self._size = [], [], {}, 0

    def _earlier(self) -> list[_Row]:
        """The heap that the first one is in."""
        swept, heap = self._swept, self._heap
        return swept if swept and not (heap and heap[0] < swept[0]) else heap

    def tidy(self, waiting: int, kept: int) -> bool:
        """Sweeps out what has left, where that is much, as goes in one turn; whether there is more of it."""
        self._sweep(turn.SCATTERED, waiting, kept)
        return self._too_much(waiting, kept)

    def _too_much(self, waiting: int, kept: int) -> bool:
        return len(self._heap) + len(self._swept) > 2 * waiting or self._size > 2 * kept + _SPARE_BYTES

    def _sweep(self, steps: int, waiting: int, kept: int) -> None:
        for _ in range(steps):
            if not self._swept:
                if not self._heap or not self._too_much(waiting, kept):
                    return
                self._heap, self._swept = self._swept, self._heap
            row = self._swept.pop()
            if self._counts(row):
                heappush(self._heap, row)
            else:
                self._forget(row)

    def _counts(self, row: _Row) -> bool:
        return row[-1].state in self._of and self._known.get(row[-1]) is row

    def _forget(self, row: _Row) -> None:
        if self._known.get(row[-1]) is row:
            self.disown(row[-1])

    def disown(self, entry: Entry) -> None:
        """It is not in here any more, unless it is put in again; a row may be left of it."""
        # Not as it is now: its message may have been taken out of it, or replaced.
        if row := self._known.pop(entry, None):
            self._size -= row[_WEIGHT]
