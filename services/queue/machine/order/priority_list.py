"""Entries by priority: one list for each level, the highest level that has something is the front."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from operator import attrgetter

from services.queue.machine import turn
from services.queue.machine.entry import Entry
from services.queue.machine.order.entry_list import EntryList
from services.queue.machine.order.ready import Arriving
from services.queue.machine.order.sorted_front import SortedFront
from services.queue.machine.order.steps import Steps, StepsInTurn

_BODY = attrgetter("message.body")
_PROPERTIES = attrgetter("message.properties")


class PriorityList(Arriving):
    """The same as EntryList to whoever uses it; of `levels` the lowest has all up to `lowest`."""

    by_arrival = False

    __slots__ = ("_highest", "_levels", "_lowest")

    def __init__(self, levels: int, lowest: int = 0) -> None:
        self._lowest = lowest
        self._highest = levels - 1
        self._levels = [EntryList() for _ in range(levels)]
        self._levels.reverse()

    @property
    def count(self) -> int:
        return sum(level.count for level in self._levels)

    @property
    def size(self) -> int:
        return sum(level.size for level in self._levels)

    def extend(self, entries: Iterable[Entry], size: int) -> None:  # noqa: ARG002 - as Ready says
        """As EntryList; they need not be of one priority."""
        for level, some in self._by_level(entries):
            level.extend(some, sum(map(len, map(_BODY, some))))

    def put_back(self, entries: list[Entry]) -> None:
        for level, some in self._by_level(entries):
            level.put_back(some)

    def peek(self) -> Entry | None:
        return next((entry for level in self._levels if level.count and (entry := level.peek())), None)

    def pop(self) -> Entry | None:
        return next((entry for level in self._levels if level.count and (entry := level.pop())), None)

    def take(self, limit: int, size: int, now: int, expired: list[Entry]) -> list[Entry]:
        taken: list[Entry] = []
        for level in self._levels:
            if len(taken) >= limit or size <= 0 or len(expired) >= turn.AT_ONCE:
                break
            if level.count:
                some = level.take(limit - len(taken), size, now, expired)
                taken += some
                size -= sum(map(len, map(_BODY, some))) + sum(map(len, map(_PROPERTIES, some)))
        return taken

    def acquire(self, uids: set[int]) -> list[Entry]:
        return [entry for level in self._levels for entry in level.acquire(uids)]

    def take_before(self, position: int, most: int) -> list[Entry]:
        taken: list[Entry] = []
        for level in self._levels:
            if level.count:
                taken += level.take_before(position, most - len(taken))
        return taken

    def withdraw(self, entry: Entry) -> Entry:
        return self._levels[self._highest - self._level(entry)].withdraw(entry)

    def clear(self) -> list[Entry]:
        return [entry for level in self._levels for entry in level.clear()]

    def view(self, seen: int) -> Iterator[Entry]:
        """By position, not by priority: a browser comes by each entry once."""
        merged = [entry for level in self._levels for entry in level.view(seen)]
        merged.sort(key=lambda entry: entry.position)
        return iter(merged)

    def steps(self, seen: tuple[int, int] | None, before: int) -> StepsInTurn:
        """As Ready says: level by level."""
        level, position = seen or (-self._highest, None)
        steps_of = partial(self._steps_of, before)
        return StepsInTurn(len(self._levels), self._highest + level, position, steps_of, self._rank_of)

    def _steps_of(self, before: int, number: int, seen: int | None) -> Steps:
        return self._levels[number].steps(seen, before)

    def _rank_of(self, number: int, position: int) -> tuple[int, int]:
        return number - self._highest, position

    def rank(self, entry: Entry) -> tuple[int, int]:
        """As Ready says."""
        return -self._level(entry), entry.position

    def worth(self, entry: Entry) -> tuple[int, int]:
        """As Ready says: the lowest priority goes first."""
        return self._level(entry), entry.position

    def selectable(self) -> SortedFront:
        """As Ready says."""
        return SortedFront(self)

    def _level(self, entry: Entry) -> int:
        return min(max(entry.message.facts.priority - self._lowest, 0), self._highest)

    def _by_level(self, entries: Iterable[Entry]) -> Iterator[tuple[EntryList, list[Entry]]]:
        grouped: dict[int, list[Entry]] = {}
        alike: dict[int, list[Entry]] = {}  # of the same by priority: which may be of one level
        for entry in entries:
            priority = entry.message.facts.priority
            if (some := alike.get(priority)) is None:
                some = alike[priority] = grouped.setdefault(self._level(entry), [])
            some.append(entry)
        for level, some in grouped.items():
            yield self._levels[self._highest - level], some
