"""What waits in front, by the values of properties that consumers compare for equality."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from services.common.selectors.message import MessageView
from services.common.selectors.term import Equality
from services.queue.machine.entry import AVAILABLE, Entry

_SPARE: Final = 1000  # entries that have left and are remembered, at most, besides as many as there are …
_SPARE_BYTES: Final = 1 << 20  # … and what they weigh, besides as much as its queue keeps


class Index:
    """Entries by each of `names`, in their order; those that have left are passed over, and forgotten some time."""

    __slots__ = ("_count", "_rank", "_rows", "_size", "names")

    def __init__(self, names: Iterable[str], rank: Callable[[Entry], Any]) -> None:
        self.names = frozenset(names)
        self._rank = rank
        self._rows: dict[Equality, list[Entry]] = {}
        self._count = self._size = 0

    def add(self, entry: Entry, view: MessageView) -> None:
        """It is in front now. One that was there before may be added again."""
        for name in self.names:
            self._add_to(self._rows.setdefault(Equality.of(name, view.look_up(name)), []), entry)
            self._count += 1
            self._size += entry.message.weight

    def _add_to(self, row: list[Entry], entry: Entry) -> None:
        rank = self._rank(entry)
        if not row or self._rank(row[-1]) < rank:  # most come in their order
            row.append(entry)
            return
        place = bisect_left(row, rank, key=self._rank)
        if place == len(row) or row[place] is not entry:
            row.insert(place, entry)

    def after(self, key: Equality, rank: Any) -> Iterator[Entry]:  # noqa: ANN401 - an order's own
        """Those that have it, in order, behind `rank` (None: all). Ends when something is added."""
        row = self._rows.get(key, [])
        first = 0 if rank is None else bisect_right(row, rank, key=self._rank)
        return (entry for entry in islice(row, first, None) if entry.state == AVAILABLE)

    def sweep(self, count: int, kept: int) -> None:
        """Forgets what has left, if that is much; `count` entries wait, in a queue that keeps so many bytes."""
        most = len(self.names)
        if self._count <= 2 * count * most + _SPARE and self._size <= 2 * kept * most + _SPARE_BYTES:
            return
        left = {key: [entry for entry in row if entry.state == AVAILABLE] for key, row in self._rows.items()}
        self._rows = {key: row for key, row in left.items() if row}
        self._count = sum(map(len, self._rows.values()))
        self._size = sum(entry.message.weight for row in self._rows.values() for entry in row)
