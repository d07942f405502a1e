"""What of a queue somebody chooses who consumes nothing of it: looked at, taken to be moved, or dropped."""

from __future__ import annotations

from services.common.ledger.stages import PURGED
from services.queue.machine import turn
from services.queue.machine.consumers import ConsumerLink
from services.queue.machine.entries import Entries
from services.queue.machine.entry import Entry
from services.queue.machine.record import uids_of
from services.queue.machine.walk import Walk


class Picking:
    """Of one queue."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def walk(self, *, held: bool) -> Walk:
        """Looks at what is in it now, a part at a time; `held`: also at what is somebody's."""
        return self._entries.walk(held=held)

    def take(self, entries: list[Entry], link: ConsumerLink) -> list[Entry]:
        """Those of these that wait yet are `link`'s, who moves them: nobody is shown them. Gives them."""
        its, taken = self._entries, self._entries.take_back(entries)
        for entry in taken:
            entry.holder = link
            its.unsettled[entry.message.uid] = entry
            its.tell_held(None, entry)
        return taken

    def drop(self, entries: list[Entry]) -> list[Entry]:
        """Drops those of these that wait yet; gives them."""
        taken = self._entries.take_back(entries)
        self._entries.drop(taken, PURGED)
        return taken

    @property
    def next_position(self) -> int:
        """That of the next newcomer: what is here now stands before it."""
        return self._entries.position

    def purge(self, most: int | None = None, before: int | None = None) -> int:
        """Drops what is ready, from the front, `most` at most (None: as goes in one turn); gives the number.

        `before`: what stands there or behind stays.
        """
        its, most = self._entries, turn.AT_ONCE if most is None else most
        entries = its.take_before(its.position if before is None else before, most)
        if entries:
            its.record.dropped(uids_of(entries), PURGED)
        its.forget(entries)
        return len(entries)
