"""What the features of a queue keep of messages: given back by the journal, noted for the next owner, asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain

from services.queue.machine import turn
from services.queue.machine.entries import Entries
from services.queue.machine.entry import Entry
from services.queue.machine.features.admission import Admission
from services.queue.machine.features.annotated import FEATURE as ANNOTATED
from services.queue.machine.features.keeper import Keeper
from services.queue.machine.journal_draft import Note, NotePlace
from services.queue.machine.modifying import Modifying


class Kept:
    """Of one queue."""

    __slots__ = ("_admission", "_entries", "_modifying")

    def __init__(self, entries: Entries, admission: Admission, modifying: Modifying) -> None:
        self._entries, self._admission, self._modifying = entries, admission, modifying

    @property
    def size(self) -> int:
        """Bytes that features keep in memory of messages that may be gone."""
        return sum(window.size for window in self._admission.windows())

    def portion(self, entries: Sequence[Entry]) -> int:
        """How many of these, which it had, a queue is given back in one turn."""
        annotated, most = self._entries.annotated, turn.SCATTERED
        return annotated.portion(entries[:most]) if annotated else most

    def recall(self, notes: Sequence[tuple[Note, NotePlace]], entries: Sequence[Entry]) -> None:
        """Gives features back what they noted in the journal; before it takes anything, as these entries.

        What is of a feature that it has no more is not kept.
        """
        if any(note.feature == ANNOTATED for note, _ in notes):
            self._modifying.annotated()
        keepers = {each.feature: each for each in self._keepers()}
        for keeper in keepers.values():
            keeper.recall(notes, entries)
        self._entries.context.draft.drop_notes([place for note, place in notes if note.feature not in keepers])

    def not_safe(self, uids: AbstractSet[int]) -> None:
        """What these published messages are could not be written: they count as new if they come again."""
        for window in self._admission.windows():
            window.not_safe(uids)

    def unwritten(self) -> Iterator[Note]:
        """What features keep that is not in the journal; to be used up before anything changes."""
        return chain.from_iterable(feature.unwritten() for feature in self._keepers())

    def _keepers(self) -> Iterator[Keeper]:
        yield from self._admission.windows()
        if self._entries.acquired:
            yield self._entries.acquired
        if self._entries.attempts:
            yield self._entries.attempts
        if self._entries.sent_on:
            yield self._entries.sent_on
        if self._entries.annotated:
            yield self._entries.annotated
        if self._entries.aside:
            yield from self._entries.aside.keepers()

    def was_given_back(self, entry: Entry) -> bool:
        """Whether it was somebody's who made no attempt, where that is counted."""
        return self.acquired(entry) > entry.attempts

    def acquired(self, entry: Entry) -> int:
        """How often one was somebody's before, where clients are told; else 0."""
        return self._entries.acquired.of(entry) if self._entries.acquired else 0
