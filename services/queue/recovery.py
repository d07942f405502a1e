"""Reads a partition back: entry batches of the journal become entries of queues again."""

from __future__ import annotations

from collections.abc import Callable

from services.queue.entry import Entry, JournalPart
from services.queue.message import Interned, MemoryAccount, Message, Run
from services.rpc.queue_pb2 import PublishBatch, PublishRun
from services.rpc.store_pb2 import EntryColumns, RecoveredBatch


class Recovery:
    """Collects the entries of each queue, in order; `ttl_of` tells a queue's x-message-ttl."""

    def __init__(self, account: MemoryAccount, interned: Interned, ttl_of: Callable[[int], int | None]) -> None:
        self.entries: dict[int, list[Entry]] = {}
        self.watermarks: dict[int, int] = {}
        self.highest = 0  # id of an entry batch
        self._account = account
        self._interned = interned
        self._ttl_of = ttl_of
        self._positions: dict[int, int] = {}

    def add(self, batch: RecoveredBatch) -> None:
        """Takes the next part of the store's stream."""
        for mark in batch.watermarks:
            self.watermarks[mark.origin] = mark.uid
        if not batch.entries.count:
            return
        self.highest = max(self.highest, batch.entries.id)
        columns, dequeued, index = EntryColumns.FromString(batch.entries.entries), set(batch.dequeued), 0
        content = _Content(PublishBatch.FromString(batch.columns), self._interned)
        for queue_id, first, count in zip(columns.queue_id, columns.first, columns.count, strict=True):
            place = self._positions.get(queue_id, 0)
            self._positions[queue_id] = place + count
            part = JournalPart(batch.entries.id, place - index)
            left = [offset for offset in range(count) if index + offset not in dequeued]
            entries = [self._entry(content, queue_id, first + offset, place + offset, part) for offset in left]
            for entry, offset in zip(entries, left, strict=True):
                entry.attempts = int(index + offset < batch.delivered_upto)
            if entries:
                self.entries.setdefault(queue_id, []).extend(entries)
            index += count

    def _entry(self, content: _Content, queue_id: int, index: int, position: int, part: JournalPart) -> Entry:
        message = content.message(index)
        if not message.references:
            self._account.used += message.size
        message.references += 1
        limits = [ttl for ttl in (message.run.ttl_ms, self._ttl_of(queue_id)) if ttl is not None]
        return Entry(message, position, content.time_ms + min(limits) if limits else 0, part)


class _Content:
    """A publish batch whose messages become objects when an entry needs them."""

    def __init__(self, batch: PublishBatch, interned: Interned) -> None:
        self.time_ms = batch.time_ms
        self._uids = batch.uids
        self._bodies = batch.bodies
        self._messages: dict[int, Message] = {}
        self._runs: list[Run] = []
        self._properties: list[bytes] = []
        own = iter(batch.properties)
        for run in batch.runs:
            self._runs += [interned.run(facts(run))] * run.count
            if run.HasField("shared_properties"):
                self._properties += [interned.properties(run.shared_properties)] * run.count
            else:
                self._properties += [next(own) for _ in range(run.count)]

    def message(self, index: int) -> Message:
        found = self._messages.get(index)
        if found is None:
            made = Message(self._uids[index], self._properties[index], self._bodies[index], self._runs[index])
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
