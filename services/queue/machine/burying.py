"""Entries that become dead letters: what the journal says of them goes along, until their targets have them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from services.queue.machine.context import DeadLetter
from services.queue.machine.entry import Entry
from services.queue.machine.features.sent_on import UNSENT
from services.queue.machine.journal_draft import NotePlace

if TYPE_CHECKING:
    from services.queue.machine.entries import Entries


def letters_of(its: Entries, entries: Iterable[Entry], reason: str, now: int) -> list[DeadLetter]:
    """Letters of entries of a queue that are out of its list; its features keep nothing more of them."""
    some = list(entries)
    keepers = [each for each in (its.attempts, its.annotated) if each]
    noted = [places for each in keepers if (places := each.handed_on(some))]
    sent = its.sent_on.handed_on(some) if its.sent_on else {}

    def letter(entry: Entry) -> DeadLetter:
        uid = entry.message.uid
        notes: tuple[NotePlace, ...] = tuple(places[uid] for places in noted if uid in places)
        return DeadLetter(its.options, entry, reason, now, its.holding, notes, sent.get(uid, UNSENT))

    return [letter(entry) for entry in some]
