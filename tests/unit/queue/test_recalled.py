"""What features have noted of messages comes back to them, in whatever order the journal has it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, permutations
from typing import Any

import pytest

from services.common.message.facts import Facts
from services.queue.machine.entry import Entry, JournalPart
from services.queue.machine.features import attempts, retries
from services.queue.machine.journal_draft import Note, NotePlace, PartitionDraft
from services.queue.machine.message import Message

HERE, GONE = 7, 8
PLACES = [NotePlace(1, 0), NotePlace(1, 1), NotePlace(2, 0), NotePlace(2, 1)]


def entry() -> Entry:
    """Of a message on disk that was tried once."""
    message = Message(HERE, Facts("/", "", "", "amqp-0-9", persistent=True), b"", b"", 0)
    made = Entry(message, 0, part=JournalPart(9, 0))
    made.attempts = 1
    return made


def notes_of(feature: str, values: Sequence[bytes]) -> list[tuple[Note, NotePlace]]:
    """They stand at PLACES; one of another feature is among them."""
    mine = [(Note(1, feature, value), place) for value, place in zip(values, PLACES, strict=True)]
    return [*mine, (Note(1, "other", b""), NotePlace(3, 0))]


def recalled(keeper: Any, feature: str, values: Sequence[bytes], order: Sequence[int]) -> tuple[Entry, Any]:
    """The entry, and what was dropped from the journal meanwhile."""
    draft = PartitionDraft(lambda: None, count(100).__next__)
    feature_of, its, notes = keeper(1, draft), entry(), notes_of(feature, values)
    feature_of.recall([notes[at] for at in order], [its])
    dropped = {NotePlace(batch, at) for batch, indexes in draft.dequeues.items() for at in indexes}
    draft.reset()
    feature_of.left([its])
    assert [NotePlace(batch, at) for batch, indexes in draft.dequeues.items() for at in indexes] == [PLACES[1]]
    return its, dropped


@pytest.mark.parametrize("order", list(permutations(range(5))))
def test_attempts(order: Sequence[int]) -> None:
    """The most of one message count, and what is noted besides is dropped."""
    values = [attempts._VALUE.pack(*each) for each in ((HERE, 2), (HERE, 4), (GONE, 9), (HERE, 3))]
    its, dropped = recalled(attempts.Attempts, attempts.FEATURE, values, order)
    assert its.attempts == 4
    assert dropped == {PLACES[0], PLACES[2], PLACES[3]}


@pytest.mark.parametrize("order", list(permutations(range(5))))
def test_retries(order: Sequence[int]) -> None:
    """The same of the latest time."""
    values = [retries._VALUE.pack(*each) for each in ((HERE, 20), (HERE, 40), (GONE, 90), (HERE, 30))]
    _, dropped = recalled(retries.Retries, retries.FEATURE, values, order)
    assert dropped == {PLACES[0], PLACES[2], PLACES[3]}
