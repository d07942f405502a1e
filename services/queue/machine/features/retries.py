"""Until when messages that came back wait for their retry: their owner's death does not end that.

Of each one on disk the time is noted as it comes back, of the others when they are handed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Final

from services.common.topology.slots import SlotId
from services.queue.machine.entry import Entry
from services.queue.machine.journal_draft import Note, NotePlace, PartitionDraft

FEATURE: Final = "retry"
_VALUE: Final = Struct("<QQ")  # uid, time (Unix ms)


class Retries:
    """Of one queue."""

    feature = FEATURE
    __slots__ = ("_draft", "_places", "_queue_id", "_times")

    def __init__(self, queue_id: SlotId, draft: PartitionDraft) -> None:
        self._queue_id = queue_id
        self._draft = draft
        self._times: dict[int, int] = {}  # by uid
        self._places: dict[int, NotePlace] = {}  # by uid, of those that the journal knows

    def until(self, entry: Entry) -> int:
        """When one may be delivered again, or 0."""
        return self._times.get(entry.message.uid, 0)

    def wait(self, timed: Iterable[tuple[int, Entry]]) -> None:
        """They came back, and wait until these times."""
        for time, entry in timed:
            uid = entry.message.uid
            if self._times.get(uid) == time:  # as a former owner noted
                continue
            self._drop([uid])
            self._times[uid] = time
            if entry.part is not None:
                self._places[uid] = self._draft.note(self._note(uid, time))

    def left(self, entries: Iterable[Entry]) -> None:
        """They do not wait any more: their time has come, or they are not in the queue."""
        if self._times:
            self._drop([uid for entry in entries if self._times.pop(uid := entry.message.uid, None) is not None])

    def _drop(self, uids: Iterable[int]) -> None:
        self._draft.drop_notes([place for uid in uids if (place := self._places.pop(uid, None))])

    def _note(self, uid: int, time: int) -> Note:
        return Note(self._queue_id, FEATURE, _VALUE.pack(uid, time))

    def unwritten(self) -> Iterator[Note]:
        """As Keeper says."""
        return (self._note(uid, time) for uid, time in self._times.items() if uid not in self._places)

    def recall(self, notes: Sequence[tuple[Note, NotePlace]], entries: Sequence[Entry]) -> None:
        """As Keeper says. Of one message the latest counts; what is noted of others than these is not needed."""
        there, times, places = {entry.message.uid for entry in entries}, self._times, self._places
        stale: list[NotePlace] = []
        for note, place in notes:
            if note.feature != FEATURE:
                continue
            uid, time = _VALUE.unpack(note.value)
            if uid not in there or times.get(uid, 0) > time:
                stale.append(place)
                continue
            if uid in places:
                stale.append(places[uid])
            times[uid], places[uid] = time, place
        self._draft.drop_notes(stale)
