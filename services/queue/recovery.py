"""Reads a partition back: entry batches of the journal become entries of queues again."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from services.common.ledger.stages import HANDED_OVER, HELD, JOURNAL
from services.queue.entry import ACQUIRED, Entry, Former, JournalPart
from services.queue.known import Known
from services.queue.message import NOBODYS, Interned, MemoryAccount, Message, Run
from services.queue.record import uids_of
from services.queue.times import times
from services.rpc.queue_pb2 import PublishBatch, PublishRun
from services.rpc.store_pb2 import EntryColumns, RecoveredBatch, TakenColumns


class Recovery:
    """Collects the entries of each queue; `epoch` is the reader's, `ttl_of` tells a queue's x-message-ttl."""

    def __init__(
        self,
        account: MemoryAccount,
        interned: Interned,
        epoch: int,
        ttl_of: Callable[[int], int | None],
        traced: Callable[[int, int, bytes, int, int], None],
    ) -> None:
        """`traced` hears of messages that get spans: uid, queue id, context, when received (Unix, ms), attempts."""
        self.entries: dict[int, list[Entry]] = {}
        self.known = Known()
        self.highest = 0  # id of an entry batch
        self.recovered: dict[tuple[int, str], list[int]] = {}  # queue and why → uids, for the ledger
        self.formers: dict[int, Former] = {}  # gateways that had something from the former owner, by origin
        self._epoch = epoch
        self._account = account
        self._interned = interned
        self._ttl_of = ttl_of
        self._traced = traced
        self._next: dict[int, int] = {}  # queue → position behind all that was read
        self._mixed: set[int] = set()  # queues whose batches do not come in the order of positions

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
        reader = _Reader(batch, columns, _Content(PublishBatch.FromString(batch.columns), self._interned))
        runs = zip(columns.queue_id, columns.first, columns.count, strict=True)
        self.known.recover_batch(batch.entries.id, runs, reader.content.uids, handed_over=bool(columns.attempts))
        for number, (queue_id, count) in enumerate(zip(columns.queue_id, columns.count, strict=True)):
            self._add_run(reader, number, queue_id, index, count)
            index += count

    def in_order(self) -> dict[int, list[Entry]]:
        """All of them by queue, positions ascending."""
        for queue_id in self._mixed & self.entries.keys():
            self.entries[queue_id].sort(key=attrgetter("position"))
        return self.entries

    def _add_run(self, reader: _Reader, number: int, queue_id: int, index: int, count: int) -> None:
        following = self._next.get(queue_id, 0)
        columns = reader.columns
        place = columns.position[number] if columns.position else following
        if place < following:
            self._mixed.add(queue_id)
        self._next[queue_id] = max(following, place + count)
        handed_over = bool(columns.attempts)
        expires = columns.expires[number] if handed_over else self._expires(reader, number, queue_id)
        attempts = columns.attempts[number] if handed_over else 0
        origin = columns.held_by[number] if handed_over else 0
        kept = origin > 0 and columns.epoch + 1 == self._epoch
        entries = reader.entries(number, index, count, place, expires, attempts + (origin > 0 and not kept))
        if kept and entries:
            former = self.formers.setdefault(origin, Former(origin))
            for entry in entries:
                entry.state, entry.holder = ACQUIRED, former
        messages = [entry.message for entry in entries]
        self._account.hold(messages, sum([message.weight for message in messages]), NOBODYS)
        reason = HELD if kept else HANDED_OVER if handed_over else JOURNAL
        self.recovered.setdefault((queue_id, reason), []).extend(uids_of(entries))
        if entries:
            self.entries.setdefault(queue_id, []).extend(entries)
            if reader.content.traced:
                self._trace(reader.content, queue_id, entries)

    def _trace(self, content: _Content, queue_id: int, entries: list[Entry]) -> None:
        for entry in entries:
            if found := content.traced.get(entry.message.uid):
                self._traced(entry.message.uid, queue_id, *found, entry.attempts)

    def _expires(self, reader: _Reader, number: int, queue_id: int) -> int:
        first = reader.columns.first[number]
        ttls, received = (reader.content.ttl(first), self._ttl_of(queue_id)), reader.content.received(first)
        return min((received + ttl for ttl in ttls if ttl is not None), default=0)


class _Reader:
    """One entry batch and what it refers to."""

    def __init__(self, batch: RecoveredBatch, columns: EntryColumns, content: _Content) -> None:
        self.columns = columns
        self.content = content
        self._batch = batch.entries.id
        self._dequeued = set(batch.dequeued)
        self._delivered = batch.delivered_upto

    def entries(self, number: int, index: int, count: int, place: int, expires: int, attempts: int) -> list[Entry]:
        """Those of run `number` that are left; the run begins at `index` of the batch and at `place` of its queue."""
        part = JournalPart(self._batch, place - index)
        first, message, dequeued = self.columns.first[number], self.content.message, self._dequeued
        left = [at for at in range(count) if index + at not in dequeued] if dequeued else range(count)
        entries = [Entry(message(first + at), place + at, expires, part) for at in left]
        for entry, at in zip(entries, left, strict=True):
            entry.attempts = attempts + (index + at < self._delivered)
        return entries


class _Content:
    """A publish batch whose messages become objects when an entry needs them."""

    def __init__(self, batch: PublishBatch, interned: Interned) -> None:
        self.uids = list(batch.uids)  # outlives the batch, whose bodies columns of its own would keep
        self._bodies = batch.bodies
        self._messages: dict[int, Message] = {}
        self._runs: list[Run] = []
        self._properties: list[bytes] = []
        self._times: list[int] = []
        own = iter(batch.properties)
        for run, time_ms in zip(batch.runs, times(batch), strict=True):
            self._times += [time_ms] * run.count
            self._runs += [interned.run(facts(run))] * run.count
            if run.HasField("shared_properties"):
                self._properties += [interned.properties(run.shared_properties)] * run.count
            else:
                self._properties += [next(own) for _ in range(run.count)]
        self.traced = {batch.uids[one.index]: (one.context, self._times[one.index]) for one in batch.traced}
        """Of messages by uid: context, and when it was received."""

    def received(self, index: int) -> int:
        """When the gateway had it, Unix ms."""
        return self._times[index]

    def ttl(self, index: int) -> int | None:
        """The expiration that a message has of its own."""
        return self._runs[index].ttl_ms

    def message(self, index: int) -> Message:
        found = self._messages.get(index)
        if found is None:
            made = Message(self.uids[index], self._properties[index], self._bodies[index], self._runs[index])
            found = self._messages[index] = made
        return found


def facts(run: PublishRun) -> Run:
    """What a run on the wire says of all its messages."""
    return Run(
        run.virtual_host,
        run.exchange,
        run.routing_key,
        run.format,
        run.persistent,
        run.priority,
        run.ttl_ms if run.HasField("ttl_ms") else None,
    )
