"""Entries of which some consumers do not want the next: those in front have been looked at, and stand in order.

What nobody has looked at stays in the list that it was in, so that a queue of a million entries gets its first
consumer that chooses in no time. All in front come before all that are not; a newcomer goes where its rank says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sortedcontainers import SortedKeyList

from services.queue.machine import turn
from services.queue.machine.entry import ACQUIRED, AVAILABLE, GONE, Entry
from services.queue.machine.order.ready import EntriesOnly, Fresh
from services.queue.machine.order.sorted_entries import pop_before
from services.queue.machine.order.steps import KeySteps, Steps

if TYPE_CHECKING:
    from services.queue.machine.arrival import Arrival
    from services.queue.machine.order.ready import Ready

_position = attrgetter("position")
_ALL = 1 << 62  # bytes


class SortedFront(EntriesOnly):
    """See Selectable. `rest` is the list behind; `_edge` is the highest rank that was ever in front."""

    __slots__ = ("_edge", "_fresh", "_front", "_size", "by_arrival", "displaces", "rank", "rest", "worth")

    def __init__(self, rest: Ready) -> None:
        self.rest = rest
        self.rank = rest.rank
        self.worth = rest.worth
        self.displaces = rest.displaces
        self.by_arrival = rest.by_arrival
        self._front: SortedKeyList[Entry, Any] = SortedKeyList(key=rest.rank)
        self._edge: Any = None
        self._size = 0  # of bodies in front
        self._fresh: list[Fresh] = []

    @property
    def count(self) -> int:
        return len(self._front) + self.rest.count

    @property
    def size(self) -> int:
        return self._size + self.rest.size

    # -------------------------------------------------------------- for who chooses

    def further(self, most: int) -> list[Entry]:
        """As Selectable says."""
        entries = self.rest.take(most, _ALL, 0, [])
        for entry in entries:
            entry.state = AVAILABLE
        if entries:
            self._edge = self.rank(entries[-1])
            self._add(entries)
        return entries

    def after(self, rank: Any) -> Iterator[Entry]:  # noqa: ANN401 - an order's own
        """As Selectable says."""
        if rank is None:
            return iter(self._front)
        found: Iterator[Entry] = self._front.irange_key(min_key=rank, inclusive=(False, True))
        return found

    def choose(self, entry: Entry) -> None:
        """As Selectable says."""
        self._front.remove(entry)
        self._left(entry, ACQUIRED)

    def before(self, rank: Any) -> Any:  # noqa: ANN401 - an order's own
        """As Selectable says."""
        found = next(self._front.irange_key(max_key=rank, inclusive=(True, False), reverse=True), None)
        return None if found is None else self.rank(found)

    @property
    def edge(self) -> Any:  # noqa: ANN401 - an order's own
        """As Selectable says."""
        return self._edge

    @property
    def nothing_new(self) -> bool:
        """As Selectable says."""
        return not self.rest.count and not self._fresh

    def take_fresh(self) -> list[Fresh]:
        """As Selectable says."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def plain(self) -> Ready:
        """As Selectable says."""
        return self if self._front else self.rest

    def selectable(self) -> SortedFront:
        """It is one."""
        return self

    # -------------------------------------------------------------- as Ready says

    def extend(self, entries: Iterable[Entry], size: int) -> None:  # noqa: ARG002 - of all
        behind = self._keep_front(entries)
        self.rest.extend(behind, sum(len(entry.message.body) for entry in behind))

    def put_back(self, entries: list[Entry]) -> None:
        behind = self._keep_front(entries)
        for entry in entries:
            entry.state = AVAILABLE
        self.rest.put_back(behind)

    def peek(self) -> Entry | None:
        return self._front[0] if self._front else self.rest.peek()

    def pop(self) -> Entry | None:
        if not self._front:
            return self.rest.pop()
        entry: Entry = self._front.pop(0)
        self._left(entry, ACQUIRED)
        return entry

    def take(self, limit: int, size: int, now: int, expired: list[Entry]) -> list[Entry]:
        taken: list[Entry] = []
        most = turn.AT_ONCE
        while self._front and len(taken) < limit and size > 0 and len(expired) < most and (entry := self.pop()):
            if entry.expires and entry.expires <= now:
                expired.append(entry)
            else:
                taken.append(entry)
                size -= entry.message.weight
        if not self._front and len(taken) < limit and size > 0 and len(expired) < most:
            taken += self.rest.take(limit - len(taken), size, now, expired)
        return taken

    def acquire(self, uids: set[int]) -> list[Entry]:
        found = [entry for entry in self._front if entry.message.uid in uids]
        for entry in found:
            self.choose(entry)
        return sorted([*found, *self.rest.acquire(uids)], key=_position)

    def take_before(self, position: int, most: int) -> list[Entry]:
        taken = pop_before(self._front, position, most)
        for entry in taken:
            self._left(entry, ACQUIRED)
        return taken + self.rest.take_before(position, most - len(taken))

    def withdraw(self, entry: Entry) -> Entry:
        if self._edge is None or self.rank(entry) > self._edge:
            return self.rest.withdraw(entry)
        self.choose(entry)
        return entry

    def clear(self) -> list[Entry]:
        entries = list(self._front)
        self._front.clear()
        for entry in entries:
            self._left(entry, GONE)
        return entries + self.rest.clear()

    def view(self, seen: int) -> Iterator[Entry]:
        """By position, not by rank: a browser comes by each entry once."""
        entries = [entry for entry in self._front if entry.position > seen]
        entries += self.rest.view(seen)
        return iter(sorted(entries, key=_position))

    def steps(self, seen: Any, before: int) -> Steps:  # noqa: ANN401 - an order's own
        return _FrontSteps(KeySteps(self._front, self.rank, seen, before), self.rest.steps(seen, before))

    def passed_by(self, arrival: Arrival, count: int, position: int) -> None:
        self.rest.passed_by(arrival, count, position)

    def take_displaced(self) -> list[Entry]:
        return self.rest.take_displaced()

    def _keep_front(self, entries: Iterable[Entry]) -> list[Entry]:
        """Keeps those whose place is in front; gives the others."""
        if self._edge is None:
            return list(entries)
        front: list[Entry] = []
        behind: list[Entry] = []
        for entry in entries:
            (front if self.rank(entry) <= self._edge else behind).append(entry)
        self._add(front)
        self._fresh += [Fresh(entry, entry.state == ACQUIRED) for entry in front]
        return behind

    def _add(self, entries: list[Entry]) -> None:
        self._front.update(entries)
        self._size += sum(len(entry.message.body) for entry in entries)

    def _left(self, entry: Entry, state: int) -> None:
        entry.state = state
        self._size -= len(entry.message.body)


class _FrontSteps:
    """Of what is in front, then of the rest: what comes to the front meanwhile comes before that."""

    __slots__ = ("_front", "_rest", "over")

    def __init__(self, front: KeySteps, rest: Steps) -> None:
        self._front = front
        self._rest = rest
        self.over = False

    @property
    def seen(self) -> Any:  # noqa: ANN401 - an order's own
        """The rank of the last one."""
        return self._front.seen

    def some(self, most: int) -> list[Entry]:
        """As Steps says."""
        found = self._front.some(most)
        if not self._front.over:
            return found
        found += self._rest.some(most)
        seen = self._rest.seen
        if seen is not None and (self._front.seen is None or seen > self._front.seen):
            self._front.seen = seen
        self.over = self._rest.over
        return found
