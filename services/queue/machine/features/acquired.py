"""How often a message was somebody's, of a queue that limits attempts: those who only gave it back made none.

An entry counts attempts itself, so only what came back untried is here. What is handed over is known to the next owner;
that of one that died does not know it, since what is released may come as often as clients like.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from services.common.topology.slots import SlotId
from services.queue.machine.entry import Entry
from services.queue.machine.journal_draft import Note, NotePlace, PartitionDraft

FEATURE: Final = "acquired"
_VALUE: Final = Struct("<QI")  # uid, times


class Acquired:
    """Of one queue."""

    feature = FEATURE
    __slots__ = ("_draft", "_places", "_queue_id", "_untried")

    def __init__(self, queue_id: SlotId, draft: PartitionDraft) -> None:
        self._queue_id = queue_id
        self._draft = draft
        self._untried: dict[int, int] = {}  # by uid
        self._places: dict[int, NotePlace] = {}  # of those that a former owner noted: by uid too

    def of(self, entry: Entry) -> int:
        """How often it was somebody's before."""
        return entry.attempts + self._untried.get(entry.message.uid, 0)

    def untried(self, entries: Iterable[Entry]) -> None:
        """They were given back, and this is no attempt."""
        for entry in entries:
            uid = entry.message.uid
            self._untried[uid] = self._untried.get(uid, 0) + 1
            if place := self._places.pop(uid, None):
                self._draft.drop_notes([place])

    def left(self, entries: Iterable[Entry]) -> None:
        """They are not in the queue any more."""
        if self._untried:
            gone = [entry.message.uid for entry in entries if self._untried.pop(entry.message.uid, 0)]
            self._draft.drop_notes([place for uid in gone if (place := self._places.pop(uid, None))])

    def unwritten(self) -> Iterator[Note]:
        """For the next owner, who does not find them in the journal."""
        fresh = ((uid, times) for uid, times in self._untried.items() if uid not in self._places)
        return (Note(self._queue_id, FEATURE, _VALUE.pack(*each)) for each in fresh)

    def recall(self, notes: Iterable[tuple[Note, NotePlace]], entries: Iterable[Entry]) -> None:
        """What the former owner noted; of others than these entries it is not needed any more."""
        there = {entry.message.uid for entry in entries}
        mine = sorted((*_VALUE.unpack(note.value), place) for note, place in notes if note.feature == FEATURE)
        for uid, times, place in mine:
            known = self._places.pop(uid, None) if uid in there else place
            if uid in there:
                self._untried[uid], self._places[uid] = times, place
            if known:
                self._draft.drop_notes([known])
