"""Entries in an order that is not that of their arrival: to find a place among a million takes some twenty looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import Any

from sortedcontainers import SortedKeyList

from services.queue.machine import turn
from services.queue.machine.entry import ACQUIRED, AVAILABLE, GONE, Entry
from services.queue.machine.order.ready import Arriving, Fresh
from services.queue.machine.order.steps import KeySteps

_position = attrgetter("position")


def pop_before(entries: SortedKeyList[Entry, Any], position: int, most: int) -> list[Entry]:
    """Takes out the first of those that stand before a position, so many at most."""
    taken: list[Entry] = []
    place = 0
    while len(taken) < most and place < len(entries):
        if entries[place].position < position:
            taken.append(entries.pop(place))
        else:
            place += 1
    return taken


class SortedEntries(Arriving):
    """The same as EntryList to whoever uses it, sorted by `key`, in which an entry has its place for good."""

    by_arrival = False

    def __init__(self, key: Callable[[Entry], Any]) -> None:
        self._entries: SortedKeyList[Entry, Any] = SortedKeyList(key=key)
        self._key = key
        self.size = 0
        self._fresh: list[Fresh] | None = None  # nobody asks for them
        self._returning: AbstractSet[Entry] = frozenset()

    @property
    def count(self) -> int:
        return len(self._entries)

    def extend(self, entries: Iterable[Entry], size: int) -> None:
        new = list(entries)
        self._entries.update(new)
        self.size += size
        self._came(new)

    def put_back(self, entries: list[Entry]) -> None:
        self._returning = {entry for entry in entries if entry.state == ACQUIRED}
        for entry in entries:
            entry.state = AVAILABLE
        self.extend(entries, sum(len(entry.message.body) for entry in entries))
        self._returning = frozenset()

    def peek(self) -> Entry | None:
        return self._entries[0] if self._entries else None

    def pop(self) -> Entry | None:
        if not self._entries:
            return None
        entry: Entry = self._entries.pop(0)
        self._left(entry, ACQUIRED)
        return entry

    def take(self, limit: int, size: int, now: int, expired: list[Entry]) -> list[Entry]:
        taken: list[Entry] = []
        while len(taken) < limit and size > 0 and len(expired) < turn.AT_ONCE and (entry := self.pop()) is not None:
            if entry.expires and entry.expires <= now:
                expired.append(entry)
            else:
                taken.append(entry)
                size -= entry.message.weight
        return taken

    def acquire(self, uids: set[int]) -> list[Entry]:
        found = [entry for entry in self._entries if entry.message.uid in uids]
        for entry in found:
            self._entries.remove(entry)
            self._left(entry, ACQUIRED)
        return sorted(found, key=_position)

    def take_before(self, position: int, most: int) -> list[Entry]:
        taken = pop_before(self._entries, position, most)
        for entry in taken:
            self._left(entry, ACQUIRED)
        return taken

    def clear(self) -> list[Entry]:
        entries = list(self._entries)
        self._entries.clear()
        for entry in entries:
            self._left(entry, GONE)
        return entries

    def view(self, seen: int) -> Iterator[Entry]:
        """By position, not by key: a browser comes by each entry once."""
        return iter(sorted((entry for entry in self._entries if entry.position > seen), key=_position))

    def steps(self, seen: Any, before: int) -> KeySteps:  # noqa: ANN401 - an order's own
        """As Ready says."""
        return KeySteps(self._entries, self._key, seen, before)

    def rank(self, entry: Entry) -> Any:  # noqa: ANN401 - an order's own
        """As Ready says."""
        return self._key(entry)

    worth = rank

    def selectable(self) -> SortedEntries:
        """As Ready says: all of it is in front, since all of it is sorted."""
        self._fresh = self._fresh or []
        return self

    def further(self, most: int) -> list[Entry]:  # noqa: ARG002 - as Selectable says
        """Nothing is behind."""
        return []

    def after(self, rank: Any) -> Iterator[Entry]:  # noqa: ANN401 - an order's own
        """As Selectable says."""
        if rank is None:
            return iter(self._entries)
        found: Iterator[Entry] = self._entries.irange_key(min_key=rank, inclusive=(False, True))
        return found

    def choose(self, entry: Entry) -> None:
        """As Selectable says."""
        self._entries.remove(entry)
        self._left(entry, ACQUIRED)

    def withdraw(self, entry: Entry) -> Entry:
        """As Ready says."""
        self.choose(entry)
        return entry

    def before(self, rank: Any) -> Any:  # noqa: ANN401 - an order's own
        """As Selectable says."""
        found = next(self._entries.irange_key(max_key=rank, inclusive=(True, False), reverse=True), None)
        return None if found is None else self._key(found)

    @property
    def edge(self) -> Any:  # noqa: ANN401 - an order's own
        """Nothing is behind."""
        return None

    @property
    def nothing_new(self) -> bool:
        """As Selectable says."""
        return not self._fresh

    def take_fresh(self) -> list[Fresh]:
        """As Selectable says."""
        fresh, self._fresh = self._fresh or [], []
        return fresh

    def plain(self) -> SortedEntries:
        """As Selectable says."""
        self._fresh = None
        return self

    def _came(self, entries: list[Entry]) -> None:
        if self._fresh is not None:
            self._fresh += [Fresh(entry, entry in self._returning) for entry in entries]

    def _left(self, entry: Entry, state: int) -> None:
        entry.state = state
        self.size -= len(entry.message.body)
