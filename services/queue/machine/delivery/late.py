"""What has come in among entries that some consumers have passed: what came back, and newcomers of a higher rank."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from services.queue.machine.entry import AVAILABLE, Entry

_SOME: Final = 16
_SPARE: Final = 1000  # that are remembered, at most, besides as many as there are


class Late:
    """In the order in which they came, by numbers that only grow: consumers remember how far they have heard."""

    __slots__ = ("_entries", "_first")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._first = 0  # the number of the first of them

    @property
    def end(self) -> int:
        """The number of the next one."""
        return self._first + len(self._entries)

    def add(self, entries: list[Entry]) -> None:
        """They came now."""
        self._entries += entries

    def some(self, number: int) -> tuple[list[Entry], int]:
        """A few from a number on, and the number behind them."""
        first = max(number - self._first, 0)
        some = self._entries[first : first + _SOME]
        return some, self._first + first + len(some)

    def forget(self, heard: Iterable[int], count: int) -> None:
        """What all have heard; and what has left, if that is much: `count` entries wait."""
        done = min(heard, default=self.end) - self._first
        if done > 0:
            del self._entries[:done]
            self._first += done
        if len(self._entries) > 2 * count + _SPARE:
            # Who has heard some of them hears them again.
            self._first = self.end
            self._entries = list({id(entry): entry for entry in self._entries if entry.state == AVAILABLE}.values())
