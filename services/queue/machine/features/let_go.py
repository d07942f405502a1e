"""Up to when messages that waited since they were published were let go, of a queue on disk that holds such.

The journal says up to which message of a batch any were delivered. One whose time came later than this was not among
them: it fell due while its queue had no owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Final

from services.common.topology.slots import SlotId
from services.queue.machine.entry import Entry
from services.queue.machine.journal_draft import Note, NotePlace, PartitionDraft

FEATURE: Final = "let go"
_VALUE: Final = Struct("<Q")  # time (Unix ms)


def last(notes: Iterable[tuple[Note, NotePlace]]) -> int | None:
    """The latest such time in a queue's notes; None where none is noted: nothing was waiting, or a former release's."""
    return max((time for time, _ in _times(notes)), default=None)


class LetGo:
    """Of one queue. Something is noted as long as messages wait; without, all that have waited were let go."""

    feature = FEATURE
    __slots__ = ("_draft", "_former", "_place", "_queue_id")

    def __init__(self, queue_id: SlotId, draft: PartitionDraft) -> None:
        self._queue_id = queue_id
        self._draft = draft
        self._place: NotePlace | None = None
        self._former = False

    def some_wait(self, now: int) -> None:
        """There are such: none of those that are not due by now was anybody's."""
        if self._place is None or self._former:
            self.until(now)

    def until(self, now: int) -> None:
        """Those that are due by now were let go, and others wait yet."""
        self.all()
        self._former = False
        self._place = self._draft.note(Note(self._queue_id, FEATURE, _VALUE.pack(now)))

    def all(self) -> None:
        """None waits any more."""
        if self._place is not None:
            self._draft.drop_notes([self._place])
            self._place = None

    def unwritten(self) -> Iterator[Note]:
        """Nothing: it is in the journal."""
        return iter(())

    def recall(self, notes: Sequence[tuple[Note, NotePlace]], entries: Sequence[Entry]) -> None:  # noqa: ARG002
        """As Keeper says."""
        for _, place in sorted(_times(notes)):
            self.all()
            self._place, self._former = place, True


def _times(notes: Iterable[tuple[Note, NotePlace]]) -> Iterator[tuple[int, NotePlace]]:
    return ((_VALUE.unpack(note.value)[0], place) for note, place in notes if note.feature == FEATURE)
