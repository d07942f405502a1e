"""What waits in front, by the values of properties that consumers compare for equality."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from services.common.selectors.term import Equality
from services.queue.machine.delivery.interest import view_of
from services.queue.machine.entry import AVAILABLE, Entry

_SPARE: Final = 1000  # entries that have left and are remembered, at most, besides as many as there are


class Index:
    """Entries by each of `names`; those that have left are passed over, and forgotten some time."""

    __slots__ = ("_count", "_rank", "_rows", "names")

    def __init__(self, names: Iterable[str], rank: Callable[[Entry], Any]) -> None:
        self.names = frozenset(names)
        self._rank = rank
        self._rows: dict[Equality, _Row] = {}
        self._count = 0

    def add(self, entry: Entry) -> None:
        """It is in front now. One that was there before may be added again."""
        look_up = view_of(entry).look_up
        for name in self.names:
            row = self._rows.setdefault(Equality.of(name, look_up(name)), _Row())
            row.add(entry, self._rank)
            self._count += 1

    def after(self, key: Equality, rank: Any) -> Iterator[Entry]:  # noqa: ANN401 - an order's own
        """Those that have it, in order, behind `rank` (None: all). Ends when something is added."""
        row = self._rows.get(key)
        return row.after(rank, self._rank) if row else iter(())

    def sweep(self, count: int) -> None:
        """Forgets what has left, if that is much; `count` entries are in front."""
        if self._count <= 2 * count * len(self.names) + _SPARE:
            return
        for key, row in list(self._rows.items()):
            row.forget_gone(self._rank)
            if not row.entries:
                del self._rows[key]
        self._count = sum(len(row.entries) for row in self._rows.values())


class _Row:
    """Of one value. Most come in their order: what does not is sorted in when somebody asks."""

    __slots__ = ("_sorted", "entries")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._sorted = True

    def add(self, entry: Entry, rank: Callable[[Entry], Any]) -> None:
        if self.entries and rank(entry) <= rank(self.entries[-1]):
            self._sorted = False
        self.entries.append(entry)

    def after(self, rank: Any, rank_of: Callable[[Entry], Any]) -> Iterator[Entry]:  # noqa: ANN401
        if not self._sorted:
            self.forget_gone(rank_of)
        first = 0 if rank is None else bisect_right(self.entries, rank, key=rank_of)
        return (entry for entry in islice(self.entries, first, None) if entry.state == AVAILABLE)

    def forget_gone(self, rank: Callable[[Entry], Any]) -> None:
        waiting = {id(entry): entry for entry in self.entries if entry.state == AVAILABLE}
        self.entries = sorted(waiting.values(), key=rank)
        self._sorted = True
