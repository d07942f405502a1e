"""Which queues have a dead letter already, of those that it goes to: the next owner does not send it to them again.

They know it by themselves for a while (`letters.py`), which is enough for what was under way; a letter may wait for a
full queue, of several, for longer than that.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import Struct
from typing import Final, NamedTuple

from services.common.topology.slots import SlotId, slots_in
from services.queue.machine.entry import Entry
from services.queue.machine.journal_draft import Note, NotePlace, PartitionDraft

FEATURE: Final = "sent-on"
_UID: Final = Struct("<Q")


class Sent(NamedTuple):
    """The queues that have it, and where the journal says so."""

    taken: frozenset[SlotId] = frozenset()
    place: NotePlace | None = None


UNSENT: Final = Sent()


def note_of(queue_id: SlotId, uid: int, taken: Iterable[SlotId]) -> Note:
    """For the journal: these have the letter of an entry."""
    return Note(queue_id, FEATURE, _UID.pack(uid) + array("Q", sorted(taken)).tobytes())


def _read(note: Note) -> tuple[int, frozenset[SlotId]]:
    (uid,) = _UID.unpack_from(note.value)
    return uid, frozenset(slots_in(array("Q", note.value[_UID.size :])))


class SentOn:
    """Of one queue: what a former owner noted. Letters that are under way have it with them."""

    feature = FEATURE
    __slots__ = ("_draft", "_known")

    def __init__(self, draft: PartitionDraft) -> None:
        self._draft = draft
        self._known: dict[int, Sent] = {}  # by uid

    def handed_on(self, entries: Iterable[Entry]) -> Mapping[int, Sent]:
        """They are letters again: by uid, for who sends them."""
        if not self._known:
            return {}
        uids = [entry.message.uid for entry in entries]
        return {uid: sent for uid in uids if (sent := self._known.pop(uid, None))}

    def left(self, entries: Iterable[Entry]) -> None:
        """They are not in the queue any more, and nobody sends them."""
        gone = self.handed_on(entries)
        self._draft.drop_notes([sent.place for sent in gone.values() if sent.place])

    def unwritten(self) -> Iterator[Note]:
        """Nothing: it is all in the journal."""
        return iter(())

    def recall(self, notes: Sequence[tuple[Note, NotePlace]], entries: Sequence[Entry]) -> None:
        """As Keeper says. Of one letter the note with the most counts; what is noted of no entry is not needed."""
        there, stale = {entry.message.uid for entry in entries}, list[NotePlace]()
        for note, place in notes:
            if note.feature != FEATURE:
                continue
            uid, taken = _read(note)
            known = self._known.get(uid, UNSENT)
            if uid not in there or taken <= known.taken:
                stale.append(place)
                continue
            if known.place:
                stale.append(known.place)
            self._known[uid] = Sent(taken, place)
        self._draft.drop_notes(stale)
