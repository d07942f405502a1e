"""How many deliveries of a message failed, of a queue that limits that: its owner's death does not begin anew.

The journal says of every message whether it was delivered, which is one attempt. Each further one that failed is noted
as it comes back; one that was under way when the owner died is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import Struct
from typing import Final, NamedTuple

from services.common.topology.slots import SlotId
from services.queue.machine.entry import Entry
from services.queue.machine.journal_draft import Note, NotePlace, PartitionDraft

FEATURE: Final = "attempts"
_VALUE: Final = Struct("<QI")  # uid, attempts
_KNOWN: Final = 1  # to the journal, of whatever was delivered


class _Place(NamedTuple):
    """What the journal says now, and where."""

    attempts: int
    place: NotePlace


class Attempts:
    """Of one queue."""

    feature = FEATURE
    __slots__ = ("_draft", "_places", "_queue_id")

    def __init__(self, queue_id: SlotId, draft: PartitionDraft) -> None:
        self._queue_id = queue_id
        self._draft = draft
        self._places: dict[int, _Place] = {}  # by uid

    def of(self, entry: Entry) -> int:
        """How many are known to have failed: what is under way is not among them."""
        noted = self._places.get(entry.message.uid)
        return noted.attempts if noted else 0

    def failed(self, entries: Iterable[Entry]) -> None:
        """They came back, and may be tried again."""
        for entry in entries:
            if entry.attempts > _KNOWN and entry.part is not None:
                self._note(entry.message.uid, entry.attempts)

    def _note(self, uid: int, attempts: int) -> None:
        self._drop([uid])
        place = self._draft.note(Note(self._queue_id, FEATURE, _VALUE.pack(uid, attempts)))
        self._places[uid] = _Place(attempts, place)

    def handed_on(self, entries: Iterable[Entry]) -> Mapping[int, NotePlace]:
        """They are out of the queue, but on disk yet: by uid, where it is noted of them, for who drops it with them."""
        uids = [entry.message.uid for entry in entries]
        return {uid: noted.place for uid in uids if (noted := self._places.pop(uid, None))}

    def left(self, entries: Iterable[Entry]) -> None:
        """They are not in the queue any more."""
        if self._places:
            self._drop([entry.message.uid for entry in entries])

    def _drop(self, uids: Iterable[int]) -> None:
        self._draft.drop_notes([noted.place for uid in uids if (noted := self._places.pop(uid, None))])

    def unwritten(self) -> Iterator[Note]:
        """Nothing: entries that are handed over say it themselves."""
        return iter(())

    def recall(self, notes: Sequence[tuple[Note, NotePlace]], entries: Sequence[Entry]) -> None:
        """As Keeper says. What is noted of others than these is not needed any more."""
        there, places = {entry.message.uid: entry for entry in entries}, self._places
        stale: list[NotePlace] = []
        for note, place in notes:
            if note.feature != FEATURE:
                continue
            uid, attempts = _VALUE.unpack(note.value)
            entry, former = there.get(uid), places.get(uid)
            if entry is None or (former and former.attempts > attempts):
                stale.append(place)
                continue
            if former:
                stale.append(former.place)
            places[uid] = _Place(attempts, place)
            entry.attempts = max(entry.attempts, attempts)
        self._draft.drop_notes(stale)
