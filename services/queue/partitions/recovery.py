"""Reads a partition back: entry batches of the journal become entries of queues again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Final

from services.common.errors import InternalError
from services.common.ledger.stages import HANDED_OVER, HELD, JOURNAL
from services.common.topology.slots import SlotId, slots_in
from services.queue.journal.known import Known
from services.queue.machine.body import Body
from services.queue.machine.columns import Columns, decoded, only
from services.queue.machine.entry import ACQUIRED, Entry, Former, JournalPart
from services.queue.machine.features.let_go import last
from services.queue.machine.journal_draft import Note, NotePlace
from services.queue.machine.message import NOBODYS, Interned, MemoryAccount
from services.queue.machine.options import QueueOptions
from services.queue.machine.record import uids_of
from services.rpc.queue_pb2 import PublishBatch
from services.rpc.store_pb2 import EntryColumns, RecoveredBatch

_APART_MS: Final = 1000  # by so much clocks of two owners may differ
_NEVER: Final = 1 << 63


class NotSent(InternalError):
    """The store's stream lacks what a batch is on."""


class Recovery:
    """Collects the entries of each queue; `epoch` is the reader's, at `now`; `options_of` tells what a queue is."""

    def __init__(
        self,
        account: MemoryAccount,
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
        self._options_of = options_of
        self._traced = traced
        self._next: dict[SlotId, int] = {}  # queue → position behind all that was read
        self._mixed: set[SlotId] = set()  # queues whose batches do not come in the order of positions
        self._doubtful: dict[SlotId, list[Entry]] = {}  # by queue: perhaps their time came only when it had no owner

    def add(self, batch: RecoveredBatch, contents: Contents) -> None:
        """Takes the next batch of the partition, which `contents` has taken, as those that were read with it."""
        self.highest = max(self.highest, batch.entries.id)
        columns = EntryColumns.FromString(batch.entries.entries)
        if columns.notes:
            self._add_notes(batch, columns)
            return
        reader = _Reader(batch, columns, contents.last())
        runs = zip(slots_in(columns.queue_id), columns.first, columns.count, strict=True)
        self.known.recover_batch(batch.entries.id, runs, reader.content.uids, handed_over=bool(columns.attempts))
        for some in self._alike(columns):
            self._add_some(reader, some)

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

    def _alike(self, columns: EntryColumns) -> Iterable[_Some]:
        """The entries of each queue, or run, if it was handed over. Runs are short where queues alternate."""
        if len(columns.queue_id) == 1:
            return self._whole(columns)
        found: dict[int, _Some] = {}
        following, index = self._next, 0
        positions = columns.position or repeat(-1, len(columns.first))
        runs = zip(slots_in(columns.queue_id), columns.first, columns.count, positions, strict=True)
        for number, (queue_id, first, count, position) in enumerate(runs):
            key = number if columns.attempts else queue_id
            if (some := found.get(key)) is None:
                some = found[key] = _Some(queue_id, number)
            behind = following.get(queue_id, 0)
            place = behind if position < 0 else position
            if place < behind:
                self._mixed.add(queue_id)
            following[queue_id] = max(behind, place + count)
            some.add(first, index, place, count)
            index += count
        return found.values()

    def _whole(self, columns: EntryColumns) -> Iterable[_Some]:
        """All of a batch of one run: in many there is but one message."""
        queue_id, count = SlotId(columns.queue_id[0]), columns.count[0]
        behind = self._next.get(queue_id, 0)
        place = columns.position[0] if columns.position else behind
        if place < behind:
            self._mixed.add(queue_id)
        self._next[queue_id] = max(behind, place + count)
        some = _Some(queue_id, 0)
        some.add(columns.first[0], 0, place, count)
        return (some,)

    def _add_some(self, reader: _Reader, some: _Some) -> None:
        queue_id, number, columns = some.queue_id, some.number, reader.columns
        handed_over = bool(columns.attempts)
        attempts = columns.attempts[number] if handed_over else 0
        origin = columns.held_by[number] if handed_over else 0
        kept = origin > 0 and columns.epoch + 1 == self._epoch
        attempts += origin > 0 and not kept
        entries = reader.entries(some, attempts, latest := self._latest_of(queue_id))
        if latest < _NEVER:
            counted = [each for each in entries if each.attempts > attempts and each.message.facts.not_before]
            self._doubtful.setdefault(queue_id, []).extend(counted)
        self._date(columns, some, entries)
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

    def _date(self, columns: EntryColumns, some: _Some, entries: list[Entry]) -> None:
        """Sets when entries expire: at the same time as before."""
        if columns.attempts:
            for entry in entries:
                entry.expires = columns.expires[some.number]
            return
        options = self._options_of(some.queue_id)
        by_queue = options.lifetime(None) if options else None
        for entry in entries:
            own = entry.message.facts.ttl_ms
            lives = by_queue if own is None else options.lifetime(own) if options else own
            if lives is not None:
                entry.expires = entry.message.received + lives


class _Some:
    """Entries of a queue in a batch that went there alike, from run `number` on.

    Of each: which message of the content it is, its index in the batch, and its place in the queue.
    """

    __slots__ = ("indexes", "messages", "number", "places", "queue_id")

    def __init__(self, queue_id: SlotId, number: int) -> None:
        self.queue_id = queue_id
        self.number = number
        self.messages: list[int] = []
        self.indexes: list[int] = []
        self.places: list[int] = []

    def add(self, first: int, index: int, place: int, count: int) -> None:
        """Adds a run of so many."""
        if count == 1:
            self.messages.append(first)
            self.indexes.append(index)
            self.places.append(place)
        else:
            self.messages.extend(range(first, first + count))
            self.indexes.extend(range(index, index + count))
            self.places.extend(range(place, place + count))


class _Reader:
    """One entry batch and what it refers to."""

    def __init__(self, batch: RecoveredBatch, columns: EntryColumns, content: _Content) -> None:
        self.columns = columns
        self.content = content
        self._batch = batch.entries.id
        self._dequeued = set(batch.dequeued)
        self._delivered = batch.delivered_upto

    def entries(self, some: _Some, attempts: int, latest: int) -> list[Entry]:
        """Those that are left. What may not be delivered before a time behind `latest` was not."""
        message, gone, entries = self.content.message, self._dequeued, []
        part = JournalPart(self._batch, some.places[0] - some.indexes[0])
        for at, index, place in zip(some.messages, some.indexes, some.places, strict=True):
            if index in gone:
                continue
            if place - index != part.base:
                part = JournalPart(self._batch, place - index)
            entry = Entry(message(at), place, 0, part)
            entry.attempts = attempts
            if index < self._delivered and (entry.message.facts.not_before or 0) <= latest:
                entry.attempts += 1
            entries.append(entry)
        return entries


class Contents:
    """What batches are on, which come one after the other."""

    def __init__(self, interned: Interned) -> None:
        self._interned = interned
        self._id = 0
        self._unread: bytes | None = None
        self._last: _Content | None = None

    def take(self, batch: RecoveredBatch) -> None:
        """Takes what the next batch brings, whether or not anything is wanted of it: only the first on it has it."""
        if batch.columns or batch.entries.content != self._id:
            self._id, self._unread, self._last = batch.entries.content, batch.columns, None

    def last(self) -> _Content:
        """What the batch is on that came last.

        Raises where it cannot be read; NotSent where it did not come, or is empty on disk, and messages are not.
        """
        if self._unread is not None:
            columns, self._unread = self._unread, None
            if not columns:
                raise NotSent("what the batch is on did not come with it")
            self._last = _Content(*decoded(columns), self._interned)
        if self._last is None:
            raise InternalError("what the batch is on could not be read")
        return self._last


class _Content:
    """A publish batch whose messages become objects when an entry needs them."""

    def __init__(self, batch: PublishBatch, bodies: Sequence[Body], interned: Interned) -> None:
        its = only(batch, bodies, interned) or Columns(batch, bodies, interned)
        self.uids = its.uids  # outlives the rest
        self.message = its.message
        self.traced = {self.uids[one.index]: (one.context, its.received(one.index)) for one in batch.traced}
        """By uid: the message's trace context, and when it was received."""
