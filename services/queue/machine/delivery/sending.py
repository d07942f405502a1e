"""Entries on their way to one consumer: its credit, who holds them, what the record and the journal hear of it."""

from __future__ import annotations

from services.queue.machine.consumers import Consumer
from services.queue.machine.entries import Entries
from services.queue.machine.entry import Entry
from services.queue.machine.record import uids_of


class Sending:
    """For all consumers of a queue; entries are ones that have left the list."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def hand_out(self, consumer: Consumer, entries: list[Entry]) -> None:
        """They are its to settle, or done with where they are settled by being sent."""
        uids = self.show(consumer, entries)
        its = self._entries
        if consumer.settled:
            its.settled(entries, uids)
            return
        holder = consumer.link
        for entry in entries:
            entry.holder = holder
        its.unsettled.update(zip(uids, entries, strict=True))
        its.handed_out(entries)

    def show(self, consumer: Consumer, entries: list[Entry]) -> list[int]:
        """They are sent, and take from its credit; nothing else becomes of them. Gives their uids."""
        acquired = self._entries.acquired
        acquired_of = acquired.of if acquired else None
        again, spent = consumer.link.deliveries.add_entries(consumer.handle, entries, acquired_of)
        consumer.messages -= len(entries)
        consumer.size -= spent
        uids = uids_of(entries)
        if self._entries.record.on:
            self._tell(consumer, entries, uids, again=again)
        return uids

    def _tell(self, consumer: Consumer, entries: list[Entry], uids: list[int], *, again: bool) -> None:
        record, (first, other) = self._entries.record, consumer.places
        if not again:
            record.delivered(first, uids, consumer)
            return
        record.delivered(other, uids_of(entry for entry in entries if entry.attempts), consumer)
        if new := uids_of(entry for entry in entries if not entry.attempts):
            record.delivered(first, new, consumer)
