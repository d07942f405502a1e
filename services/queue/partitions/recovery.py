"""Reads a partition back: entry batches of the journal become entries of queues again."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Final

from services.common.ledger.stages import HANDED_OVER, HELD, JOURNAL
from services.common.topology.slots import SlotId, slots_in
from services.queue.journal.known import Known
from services.queue.machine.columns import Columns, decoded
from services.queue.machine.entry import ACQUIRED, Entry, Former, JournalPart
from services.queue.machine.features.let_go import last
from services.queue.machine.journal_draft import Note, NotePlace
from services.queue.machine.message import NOBODYS, Interned, MemoryAccount
from services.queue.machine.options import QueueOptions
from services.queue.machine.record import uids_of
from services.rpc.queue_pb2 import PublishBatch
from services.rpc.store_pb2 import EntryColumns, RecoveredBatch, TakenColumns

_APART_MS: Final = 1000  # by so much clocks of two owners may differ
_NEVER: Final = 1 << 63


class Recovery:
    """Collects the entries of each queue; `epoch` is the reader's, at `now`; `options_of` tells what a queue is."""

    def __init__(
        self,
        account: MemoryAccount,
        interned: Interned,
        epoch: int,
        now: int,
        options_of: Callable[[SlotId], QueueOptions | None],
        traced: Callable[[int, SlotId, bytes, int, int], None],
    ) -> None:
        """`traced` is told of messages that get spans: uid, queue id, context, when received (Unix, ms), attempts."""
        self.entries: dict[SlotId, list[Entry]] = {}
        self.known = Known()
        self.highest = 0  # the highest id of an entry batch
        self.recovered: dict[tuple[SlotId, str], list[int]] = {}  # queue and reason → uids, for the ledger
        self.notes: dict[SlotId, list[tuple[Note, NotePlace]]] = {}  # by queue: what its features keep
        self.formers: dict[int, Former] = {}  # by origin: gateways with unsettled deliveries of the former owner
        self._epoch = epoch
        self._soon = now + _APART_MS
        self._account = account
        self._interned = interned
        self._options_of = options_of
        self._traced = traced
        self._next: dict[SlotId, int] = {}  # queue → position behind all that was read
        self._mixed: set[SlotId] = set()  # queues whose batches do not come in the order of positions
        self._doubtful: dict[SlotId, list[Entry]] = {}  # by queue: perhaps their time came only when it had no owner

    def add(self, batch: RecoveredBatch) -> None:
        """Takes the next part of the store's stream."""
        for floor in batch.floors:
            self.known.recover_floor(floor.origin, floor.uid)
        for taken in batch.taken:
            self.known.recover_taken(taken.origin, TakenColumns.FromString(taken.messages))
        if not batch.entries.count:
            return
        self.highest = max(self.highest, batch.entries.id)
        columns, index = EntryColumns.FromString(batch.entries.entries), 0
        if columns.notes:
            self._add_notes(batch, columns)
            return
        reader = _Reader(batch, columns, _Content(*decoded(batch.columns), self._interned))
        runs = zip(slots_in(columns.queue_id), columns.first, columns.count, strict=True)
        self.known.recover_batch(batch.entries.id, runs, reader.content.uids, handed_over=bool(columns.attempts))
        for number, (queue_id, count) in enumerate(zip(slots_in(columns.queue_id), columns.count, strict=True)):
            self._add_run(reader, number, queue_id, index, count)
            index += count

    def _add_notes(self, batch: RecoveredBatch, columns: EntryColumns) -> None:
        gone = set(batch.dequeued)
        for index, note in enumerate(columns.notes):
            if index not in gone:
                found = Note(SlotId(note.queue_id), note.feature, note.value), NotePlace(batch.entries.id, index)
                self.notes.setdefault(SlotId(note.queue_id), []).append(found)

    def in_order(self) -> dict[SlotId, list[Entry]]:
        """All entries by queue, positions ascending."""
        for queue_id, entries in self._doubtful.items():
            let_go = last(self.notes.get(queue_id, ()))
            for entry in entries:
                entry.attempts -= let_go is not None and (entry.message.facts.not_before or 0) > let_go
        self._doubtful.clear()
        for queue_id in self._mixed & self.entries.keys():
            self.entries[queue_id].sort(key=attrgetter("position"))
        return self.entries

    def _add_run(self, reader: _Reader, number: int, queue_id: SlotId, index: int, count: int) -> None:
        following = self._next.get(queue_id, 0)
        columns = reader.columns
        place = columns.position[number] if columns.position else following
        if place < following:
            self._mixed.add(queue_id)
        self._next[queue_id] = max(following, place + count)
        handed_over = bool(columns.attempts)
        attempts = columns.attempts[number] if handed_over else 0
        origin = columns.held_by[number] if handed_over else 0
        kept = origin > 0 and columns.epoch + 1 == self._epoch
        attempts += origin > 0 and not kept
        entries = reader.entries(number, index, count, place, attempts, latest := self._latest_of(queue_id))
        if latest < _NEVER:
            counted = [each for each in entries if each.attempts > attempts and each.message.facts.not_before]
            self._doubtful.setdefault(queue_id, []).extend(counted)
        self._date(reader, number, queue_id, place, entries)
        if kept and entries:
            former = self.formers.setdefault(origin, Former(origin))
            for entry in entries:
                entry.state, entry.holder = ACQUIRED, former
        messages = [entry.message for entry in entries]
        self._account.hold(messages, sum([message.kept for message in messages]), NOBODYS)
        reason = HELD if kept else HANDED_OVER if handed_over else JOURNAL
        self.recovered.setdefault((queue_id, reason), []).extend(uids_of(entries))
        if entries:
            self.entries.setdefault(queue_id, []).extend(entries)
            if reader.content.traced:
                self._trace(reader.content, queue_id, entries)

    def _latest_of(self, queue_id: SlotId) -> int:
        """The latest time from which on a message may have been delivered: one that had to wait longer was not.

        The journal says up to which message of a batch any were, and others were delivered past those that wait.
        """
        options = self._options_of(queue_id)
        return self._soon if options and options.holds else _NEVER

    def _trace(self, content: _Content, queue_id: SlotId, entries: list[Entry]) -> None:
        for entry in entries:
            if found := content.traced.get(entry.message.uid):
                self._traced(entry.message.uid, queue_id, *found, entry.attempts)

    def _date(self, reader: _Reader, number: int, queue_id: SlotId, place: int, entries: list[Entry]) -> None:
        """Sets when entries of a run, which begins at `place`, expire: at the same time as before."""
        columns = reader.columns
        if columns.attempts:
            for entry in entries:
                entry.expires = columns.expires[number]
            return
        for entry in entries:
            message = columns.first[number] + entry.position - place
            entry.expires = self._expires(reader, message, queue_id)

    def _expires(self, reader: _Reader, message: int, queue_id: SlotId) -> int:
        own, options = reader.content.ttl(message), self._options_of(queue_id)
        lives = options.lifetime(own) if options else own
        return 0 if lives is None else reader.content.received(message) + lives


class _Reader:
    """One entry batch and what it refers to."""

    def __init__(self, batch: RecoveredBatch, columns: EntryColumns, content: _Content) -> None:
        self.columns = columns
        self.content = content
        self._batch = batch.entries.id
        self._dequeued = set(batch.dequeued)
        self._delivered = batch.delivered_upto

    def entries(self, number: int, index: int, count: int, place: int, attempts: int, latest: int) -> list[Entry]:
        """The entries left of run `number`, which begins at `index` of the batch and at `place` of its queue.

        What may not be delivered before a time behind `latest` was not.
        """
        part = JournalPart(self._batch, place - index)
        first, message, dequeued = self.columns.first[number], self.content.message, self._dequeued
        left = [at for at in range(count) if index + at not in dequeued] if dequeued else range(count)
        entries = [Entry(message(first + at), place + at, 0, part) for at in left]
        for entry, at in zip(entries, left, strict=True):
            delivered = index + at < self._delivered and (entry.message.facts.not_before or 0) <= latest
            entry.attempts = attempts + delivered
        return entries


class _Content:
    """A publish batch whose messages become objects when an entry needs them."""

    def __init__(self, batch: PublishBatch, bodies: list[bytes], interned: Interned) -> None:
        self._columns = Columns(batch, bodies, interned)
        self.uids = self._columns.uids  # outlives the rest
        self.message = self._columns.message
        self.received = self._columns.received
        self.traced = {self.uids[one.index]: (one.context, self.received(one.index)) for one in batch.traced}
        """By uid: the message's trace context, and when it was received."""

    def ttl(self, index: int) -> int | None:
        """The message's own expiration, in ms."""
        return self._columns.facts[index].ttl_ms
