"""What waits, looked at a part at a time while others come and go: in the order of leaving, each once.

Whoever looks remembers the rank of the last one, which an entry has for good, so that it finds its way again whatever
has happened meanwhile. What comes back behind that rank has been somebody's, and is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Protocol

from sortedcontainers import SortedKeyList

from services.queue.machine.entry import Entry


class Steps(Protocol):
    """`seen` is the rank of the last one, None before the first; `over`: there are no more."""

    @property
    def seen(self) -> Any: ...  # noqa: ANN401 - an order's own

    @property
    def over(self) -> bool: ...

    def some(self, most: int) -> list[Entry]:
        """The next ones, after `most` looks at most: there may be none among these."""


class KeySteps:
    """Of entries that are sorted by their ranks; those at position `before`, or behind, are passed over."""

    __slots__ = ("_entries", "_rank", "before", "over", "seen")

    def __init__(
        self,
        entries: SortedKeyList[Entry, Any],
        rank: Callable[[Entry], Any],
        seen: Any,  # noqa: ANN401 - an order's own
        before: int,
    ) -> None:
        self._entries = entries
        self._rank = rank
        self.seen = seen
        self.before = before
        self.over = False

    def some(self, most: int) -> list[Entry]:
        """As Steps says."""
        found = list(islice(self._behind(), most))
        self.over = len(found) < most
        if found:
            self.seen = self._rank(found[-1])
        return [entry for entry in found if entry.position < self.before]

    def _behind(self) -> Iterator[Entry]:
        if self.seen is None:
            return iter(self._entries)
        found: Iterator[Entry] = self._entries.irange_key(min_key=self.seen, inclusive=(False, True))
        return found


class StepsInTurn:
    """Of one order after the other: `steps_of` gives those of the next, by its number, and what it is called with is
    the rank to begin behind; `rank_of` makes of a number and a rank in it one of all.
    """

    __slots__ = ("_count", "_number", "_rank_of", "_steps", "_steps_of", "over", "seen")

    def __init__(
        self,
        count: int,
        first: int,
        seen: Any,  # noqa: ANN401 - an order's own
        steps_of: Callable[[int, Any], Steps],
        rank_of: Callable[[int, Any], Any],
    ) -> None:
        self._count = count
        self._number = first
        self._steps_of = steps_of
        self._rank_of = rank_of
        self._steps = steps_of(first, seen)
        self.seen = None if seen is None else rank_of(first, seen)
        self.over = False

    def some(self, most: int) -> list[Entry]:
        """As Steps says."""
        found = self._steps.some(most)
        if self._steps.seen is not None:
            self.seen = self._rank_of(self._number, self._steps.seen)
        if self._steps.over:
            self._number += 1
            self.over = self._number >= self._count
            if not self.over:
                self._steps = self._steps_of(self._number, None)
        return found
