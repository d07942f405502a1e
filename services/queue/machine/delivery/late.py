"""What has come in among entries that some consumers have passed: what came back, and newcomers of a higher rank."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from services.queue.machine.entry import AVAILABLE, Entry
from services.queue.machine.order.ready import Fresh

SOME: Final = 256
"""So many are told one by one; of more a consumer goes back to the first."""
_SPARE: Final = 1000  # that are remembered, at most, besides as many as there are …
_SPARE_BYTES: Final = 1 << 20  # … and what they weigh, besides as much as its queue keeps


class Came(NamedTuple):
    """An entry, and its number among those that came; `back`: it was there before.

    `leads`: others of its group are behind it, and come when it has been heard.
    """

    number: int
    entry: Entry
    back: bool
    leads: bool


class Late:
    """In the order in which they came, by numbers that only grow: consumers remember how far they have heard."""

    __slots__ = ("_came", "_size", "end")

    def __init__(self) -> None:
        self._came: list[Came] = []
        self._size = 0
        self.end = 0  # the number of the next one

    def add(self, entries: Sequence[Fresh], *, lead: bool = False) -> None:
        """They came now."""
        self._came += [Came(number, *fresh, lead) for number, fresh in enumerate(entries, self.end)]
        self._size += sum(fresh.entry.message.weight for fresh in entries)
        self.end += len(entries)

    def since(self, number: int) -> list[Came]:
        """Those from a number on, that wait."""
        return [came for came in self._since(number) if came.entry.state == AVAILABLE]

    def lost_since(self, number: int) -> list[Entry]:
        """Those from a number on that have left, and led others."""
        return [came.entry for came in self._since(number) if came.leads and came.entry.state != AVAILABLE]

    def _since(self, number: int) -> list[Came]:
        return self._came[bisect_left(self._came, number, key=itemgetter(0)) :]

    def forget(self, heard: Iterable[int], count: int, kept: int) -> list[Entry]:
        """What all have heard; and what has left, if that is much: `count` wait, in a queue that keeps so many bytes.

        Gives those of the latter that led others, and that not all have heard.
        """
        done = min(heard, default=self.end)
        if self._came and self._came[0].number < done:
            self._keep(self._since(done))
        if len(self._came) > 2 * count + _SPARE or self._size > 2 * kept + _SPARE_BYTES:
            lost = self.lost_since(0)
            self._keep(self._latest())
            return lost
        return []

    def _latest(self) -> list[Came]:
        """Of one that has come several times, the last time counts, and whether it led others in any."""
        latest: dict[Entry, Came] = {}
        for came in self._came:
            if came.entry.state == AVAILABLE:
                before = latest.get(came.entry, came)
                latest[came.entry] = came._replace(leads=came.leads or before.leads)
        return sorted(latest.values(), key=itemgetter(0))

    def _keep(self, came: list[Came]) -> None:
        self._came = came
        self._size = sum(each.entry.message.weight for each in came)
