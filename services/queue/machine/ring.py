"""Broker-J's overflow policy RING: all that a queue has counts; the oldest goes, whoever holds it, never the newest.

Where there are priorities, the lowest goes first. Nothing of it is a dead letter. What a transaction has is left alone.
Where a policy makes one of a queue, what is there is looked at in parts, and nothing goes before that is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sortedcontainers import SortedList

from services.queue.machine import turn
from services.queue.machine.entry import Entry
from services.queue.machine.options import QueueOptions

if TYPE_CHECKING:
    from services.queue.machine.message import Message
    from services.queue.machine.walk import Walk


_Row: TypeAlias = tuple[Any, int]  # what it is worth, and its uid


class _Known(NamedTuple):
    """An entry as it was counted: as this message, in this row."""

    entry: Entry
    message: Message
    row: _Row


class Ring:
    """All entries of one queue by what they are worth, which is less for those that go first; `size` is their bytes.

    With properties, as Broker-J counts. `full`: more is here than may be, and nothing of it can go.
    """

    __slots__ = ("_known", "_rows", "_walk", "_worth", "full", "size")

    def __init__(self, worth: Callable[[Entry], Any], walk: Walk | None) -> None:
        """`walk` goes over what is in the queue already, what is held too; None: nothing is."""
        self._worth = worth
        self._walk = walk
        self._rows: SortedList[_Row] = SortedList()
        self._known: dict[int, _Known] = {}  # by uid
        self.size = 0
        self.full = False

    @property
    def counting(self) -> bool:
        """Whether some of what was in the queue has yet to be looked at."""
        return self._walk is not None

    def count(self) -> None:
        """Looks at more of that, as goes in one turn."""
        if self._walk is not None:
            self.came(self._walk.some(turn.SCATTERED))
            if self._walk.over:
                self._walk = None

    def came(self, entries: Iterable[Entry]) -> None:
        """They are in the queue: from now on, or again."""
        self.full = False
        for entry in entries:
            known = self._known.get(entry.message.uid)
            if known is None or known.message is not entry.message:
                self._known[entry.message.uid] = self._counted(entry, known)
            elif known.entry is not entry:
                self._known[entry.message.uid] = known._replace(entry=entry)

    def _counted(self, entry: Entry, former: _Known | None) -> _Known:
        """It was not counted yet, or as another message: somebody has added annotations since."""
        if former:
            self._forget(former)
        row = self._worth(entry), entry.message.uid
        self._rows.add(row)
        self.size += entry.message.weight
        return _Known(entry, entry.message, row)

    def _forget(self, known: _Known) -> None:
        self._rows.remove(known.row)
        self.size -= known.message.weight

    def left(self, entries: Iterable[Entry]) -> None:
        """They are in it no more."""
        self.full = False
        for entry in entries:
            if known := self._known.pop(entry.message.uid, None):
                self._forget(known)

    def is_over(self, options: QueueOptions) -> bool:
        """Whether there is more than the options allow, as far as that is known: not while it is `counting`."""
        if self._walk is not None:
            return False
        return (options.max_length is not None and len(self._known) > options.max_length) or (
            options.max_bytes is not None and self.size > options.max_bytes
        )

    def first(self, newest: int, most: int) -> Iterator[Entry]:
        """Those that go first, so many at most: as far as the one at the position `newest`."""
        first = (self._known[uid].entry for _, uid in list(islice(self._rows, most)))
        return takewhile(lambda entry: entry.position < newest, first)
