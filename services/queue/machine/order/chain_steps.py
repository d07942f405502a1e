"""Steps along an EntryList: the chain, and beside it what came back, which stands before most of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from services.queue.machine.entry import AVAILABLE, Entry

if TYPE_CHECKING:
    from services.queue.machine.order.entry_list import EntryList


class ChainSteps:
    """See Steps. `seen` is a position.

    It remembers the last one of the chain that it looked at. Where that has left meanwhile, it looks for its place from
    the front again: these looks count as well.
    """

    __slots__ = ("_came_back", "_last", "_list", "before", "over", "seen")

    def __init__(
        self, entries: EntryList, came_back: Callable[[], Sequence[Entry]], seen: int | None, before: int
    ) -> None:
        """`came_back` gives those beside the chain, the lowest position last."""
        self._list = entries
        self._came_back = came_back
        self._last: Entry | None = None
        self.seen = seen
        self.before = before
        self.over = False

    def some(self, most: int) -> list[Entry]:
        """As Steps says."""
        back, entry = self._came_back(), self._place()
        seen, before, found = -1 if self.seen is None else self.seen, self.before, list[Entry]()
        index = bisect_left(back, -seen, key=_descending) - 1
        self.over = False
        for _ in range(most):
            entry = entry or self._list.unpacked()
            # A place in the chain may be empty: what left it has come back.
            if index >= 0 and (entry is None or back[index].position <= entry.position):
                candidate = back[index]
                index -= 1
            elif entry is not None:
                self._last = candidate = entry
                entry = entry.next
            else:
                break
            if candidate.position >= before:
                self.over = True
                break
            if candidate.position > seen:
                # Empty places are passed too: many of them would hold it up for ever. Of those of one message, which
                # was taken out and came back, again and again, the place where it waits is the first.
                seen = candidate.position
                if candidate.state == AVAILABLE:
                    found.append(candidate)
        self.over |= entry is None and index < 0 and not self._list.packed
        self.seen = None if seen < 0 else seen
        return found

    def _place(self) -> Entry | None:
        last, tail = self._last, self._list.tail
        if last is not None and self._list.has_in_chain(last):
            return last.next
        if tail is None or (self.seen is not None and tail.position <= self.seen):
            return None  # it has been here: to begin anew at the front would be for nothing
        return self._list.head


def _descending(entry: Entry) -> int:
    return -entry.position
