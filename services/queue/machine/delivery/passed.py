"""What waits and somebody could not have, because its group was another's: it is offered again when it may be had.

A group may have very many of these, and whoever gets the first of them may have all: a few are offered at a time, and
each of them, when it is given or nobody wants it, brings the next one behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias

from sortedcontainers import SortedKeyList

from services.queue.machine.entry import AVAILABLE, Entry

AT_ONCE: Final = 16
"""Of a group that has become free."""
_SPARE: Final = 1000  # entries that have left and are remembered, at most, besides as many as there are …
_SPARE_BYTES: Final = 1 << 20  # … and what they weigh, besides as much as its queue keeps

Rank: TypeAlias = Callable[[Entry], Any]
"""Of an entry, its place in the order."""


class Passed:
    """Entries by their groups, in their order; those that have left are passed over, and forgotten some time."""

    __slots__ = ("_by_group", "_count", "_rank", "_size")

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self._by_group: dict[Hashable, SortedKeyList[Entry, Any]] = {}
        self._count = self._size = 0

    def add(self, group: Hashable, entry: Entry) -> None:
        """One that may be there already."""
        its = self._by_group.get(group)
        if its is None:
            its = self._by_group[group] = SortedKeyList(key=self._rank)
        if its and (its[-1] is entry or entry in its):  # one after the other cannot have it
            return
        its.add(entry)
        self._count += 1
        self._size += entry.message.weight

    def first(self, group: Hashable) -> list[Entry]:
        """Takes out the first few of a group."""
        return self._take(group, 0, AT_ONCE) if group in self._by_group else []

    def behind(self, group: Hashable, entry: Entry) -> list[Entry]:
        """Takes out the next one of its group."""
        its = self._by_group.get(group)
        return [] if its is None else self._take(group, its.bisect_key_right(self._rank(entry)), 1)

    def _take(self, group: Hashable, place: int, most: int) -> list[Entry]:
        its, taken = self._by_group[group], list[Entry]()
        while len(its) > place and len(taken) < most:
            entry: Entry = its.pop(place)
            self._count -= 1
            self._size -= entry.message.weight
            if entry.state == AVAILABLE:
                taken.append(entry)
        if not its:
            del self._by_group[group]
        return taken

    def sweep(self, count: int, kept: int) -> None:
        """Forgets what has left, if that is much; `count` entries wait, in a queue that keeps so many bytes."""
        if self._count <= 2 * count + _SPARE and self._size <= 2 * kept + _SPARE_BYTES:
            return
        for group, its in list(self._by_group.items()):
            waiting = [entry for entry in its if entry.state == AVAILABLE]
            self._by_group[group] = SortedKeyList(waiting, key=self._rank)
            if not waiting:
                del self._by_group[group]
        self._count = sum(map(len, self._by_group.values()))
        self._size = sum(entry.message.weight for its in self._by_group.values() for entry in its)
