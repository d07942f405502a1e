"""What features find in the journal of a former owner."""

from __future__ import annotations

from itertools import count

from services.queue.machine.entry import Entry
from services.queue.machine.features.acquired import FEATURE as ACQUIRED
from services.queue.machine.features.acquired import Acquired
from services.queue.machine.features.attempts import FEATURE as ATTEMPTS
from services.queue.machine.features.attempts import Attempts
from services.queue.machine.journal_draft import Note, NotePlace, PartitionDraft
from services.queue.machine.message import Message
from tests.support.messages import facts


def _draft() -> PartitionDraft:
    return PartitionDraft(lambda: None, count(1000).__next__)


def _entry(uid: int) -> Entry:
    return Entry(Message(uid, facts("e"), b"", b""), uid)


def _note(feature: str, uid: int, times: int) -> Note:
    return Note(1, feature, uid.to_bytes(8, "little") + times.to_bytes(4, "little"))


def test_of_messages_that_are_gone() -> None:
    """Nothing is kept of it, here or on disk; of two notes for a message the later one is right."""
    draft, entry = _draft(), _entry(7)
    acquired, attempts = Acquired(1, draft), Attempts(1, draft)
    for feature, keeper in ((ACQUIRED, acquired), (ATTEMPTS, attempts)):
        base = 100 if feature == ACQUIRED else 200
        notes = [
            (_note(feature, uid, times), NotePlace(base, at))
            for at, (uid, times) in enumerate([(7, 2), (8, 3), (7, 3)])
        ]
        keeper.recall(notes, [entry])
        assert sorted(draft.dequeues[base]) == [0, 1]
    assert (entry.attempts, acquired.of(entry)) == (3, 6)
    acquired.left([entry])
    attempts.left([entry])
    assert {batch: sorted(indexes) for batch, indexes in draft.dequeues.items()} == {100: [0, 1, 2], 200: [0, 1, 2]}
