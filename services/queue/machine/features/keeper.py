"""A feature that keeps something beside entries: as notes in the journal, which the next owner gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from services.queue.machine.entry import Entry
from services.queue.machine.journal_draft import Note, NotePlace


class Keeper(Protocol):
    """It writes notes as things happen, or leaves them to the hand-over of the partition."""

    @property
    def feature(self) -> str:
        """By which name its notes are its own."""

    def unwritten(self) -> Iterator[Note]:
        """What is not in the journal yet."""

    def recall(self, notes: Sequence[tuple[Note, NotePlace]], entries: Sequence[Entry]) -> None:
        """What a former owner noted, its own and others'; the queue is about to take these entries back."""
