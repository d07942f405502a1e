"""What expires of a queue by itself: it may stand anywhere, with others before it that go later, or never.

Where all live as long as their queue says, and leave in the order of their arrival, the first in the list is the next
that expires: nothing is kept here for those.
"""

from __future__ import annotations

from collections.abc import Iterable

from services.queue.machine.by_time import ByTime
from services.queue.machine.entry import WAITING, Entry


class Expiring(ByTime):
    """Those of one queue. `some`: whether there are any, or may be."""

    __slots__ = ("_in_order", "some")

    def __init__(self, *, in_order: bool) -> None:
        """`in_order`: all entries wait in the list, and leave in the order in which they came."""
        super().__init__(WAITING)
        self._in_order = in_order
        self.some = False

    def expects(self, *, own: bool) -> None:
        """Entries come that expire; `own`: some have a time of their own, not just that of their queue."""
        self.some = self.some or own or not self._in_order

    def mixed(self) -> None:
        """What comes from now on may expire before what is there."""
        self._in_order = False

    def add(self, entries: Iterable[Entry], count: int, kept: int) -> None:
        """They wait from now on, or again; `count` do, in a queue that keeps so many bytes."""
        some = [each for each in entries if each.expires and each.state in WAITING and self._goes_alone(each)]
        self.put([(entry.expires, entry) for entry in some], count, kept)

    def _goes_alone(self, entry: Entry) -> bool:
        return not self._in_order or entry.message.facts.ttl_ms is not None
