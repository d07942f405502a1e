"""From the drafts of a turn to journal frames, and from their answers to `done`.

One frame a turn at most. A frame that the store refuses because a lease in it is somebody else's is written again
without that partition; the messages that were for it are refused, so that they find its owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import structlog

from services.common.ledger.uid_ranges import span
from services.common.partition import partition_in
from services.common.uid import UidSource
from services.queue.content import add_content
from services.queue.journal_draft import ContentDraft
from services.queue.partition import Partition
from services.queue.ticket import Part, Ticket
from services.rpc import queue_pb2, store_pb2

log = structlog.get_logger()


class Journal(Protocol):
    """The store's client."""

    def append(self, frame: store_pb2.JournalFrame) -> asyncio.Future[store_pb2.JournalAck]: ...


@dataclass(slots=True)
class _Changes:
    """What one partition has for a frame."""

    partition: Partition
    dequeues: dict[int, list[int]]
    delivered: dict[int, int]
    watermarks: dict[int, int]


@dataclass(slots=True)
class _Turn:
    """A frame before it is encoded, kept until the store has it."""

    changes: list[_Changes] = field(default_factory=list)
    contents: list[tuple[ContentDraft, dict[int, Partition], Ticket]] = field(default_factory=list)
    waiters: list[Part] = field(default_factory=list)
    drained: list[asyncio.Future[None]] = field(default_factory=list)

    def end(self) -> None:
        """Whatever the answer was, there will be no other."""
        for future in self.drained:
            if not future.done():
                future.set_result(None)


class JournalWriter:
    """`on_fenced` is called with partitions whose lease is somebody else's."""

    def __init__(self, journal: Journal, ids: UidSource, on_fenced: Callable[[Partition], None]) -> None:
        self._journal = journal
        self._ids = ids
        self._on_fenced = on_fenced
        self._turn = _Turn()
        self._dirty: dict[int, Partition] = {}
        self._scheduled = False
        self._under_way = 0
        self._last: _Turn | None = None

    # -------------------------------------------------------------- what is to be written

    def touch(self, partition: Partition) -> None:
        """The partition's draft is not empty any more."""
        self._dirty[partition.number] = partition
        self._schedule()

    def add(self, content: ContentDraft, partitions: dict[int, Partition], ticket: Ticket) -> None:
        """Messages of a batch that were enlisted; a part of the ticket is done when they are on disk."""
        ticket.pending += 1
        self._turn.contents.append((content, {number: partitions[number] for number in content.entries}, ticket))
        self._schedule()

    def barrier(self, ticket: Part) -> None:
        """A part of the ticket is done when everything that was added so far is on disk."""
        if not self._under_way and not self._scheduled:
            return
        ticket.pending += 1
        self._turn.waiters.append(ticket)
        self._schedule()

    def stage(
        self, transaction: int, contents: list[ContentDraft], dequeues: dict[int, list[int]], fences: list[Partition]
    ) -> asyncio.Future[store_pb2.JournalAck]:
        """Writes a transaction's part, after everything that was added before: applied when the store commits it."""
        frame = store_pb2.JournalFrame(transaction=transaction, fences=[partition.fence for partition in fences])
        for content in contents:
            add_content(frame, content, self._ids.take()[0])
        for batch, indexes in dequeues.items():
            frame.dequeues.add(batch=batch, indexes=indexes)
        return self.append(frame)

    def append(self, frame: store_pb2.JournalFrame) -> asyncio.Future[store_pb2.JournalAck]:
        """Writes a frame of its own, after everything that was added before."""
        self.flush()
        return self._journal.append(frame)

    async def drained(self) -> None:
        """Returns when everything that was added so far is on disk, whatever comes behind it."""
        self.flush()
        if self._last is not None:
            drained: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._last.drained.append(drained)
            await drained

    def flush(self) -> None:
        """Writes what there is now."""
        self._scheduled = False
        turn, self._turn = self._turn, _Turn()
        for partition in self._dirty.values():
            draft = partition.context.draft
            if not draft:
                continue  # woken for entries that are not on disk
            turn.changes.append(_Changes(partition, draft.dequeues, draft.delivered, draft.watermarks))
            draft.reset()
        self._dirty.clear()
        if turn.changes or turn.contents:
            self._write(turn)
        elif turn.waiters:
            self._follow(turn.waiters)

    # -------------------------------------------------------------- frames

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush_scheduled)

    def _flush_scheduled(self) -> None:
        if self._scheduled:
            self.flush()

    def _follow(self, waiters: list[Part]) -> None:
        if self._last is None:
            for ticket in waiters:
                ticket.part_done()
        else:
            self._last.waiters += waiters

    def _write(self, turn: _Turn) -> None:
        frame = store_pb2.JournalFrame()
        fences: dict[int, Partition] = {}
        for content, partitions, _ in turn.contents:
            add_content(frame, content, self._ids.take()[0])
            fences.update(partitions)
        for changes in turn.changes:
            fences[changes.partition.number] = changes.partition
            _add_changes(frame, changes)
        frame.fences.extend([partition.fence for partition in fences.values()])
        self._under_way += 1
        self._last = turn
        self._journal.append(frame).add_done_callback(partial(self._answered, turn))

    def _answered(self, turn: _Turn, answer: asyncio.Future[store_pb2.JournalAck]) -> None:
        self._under_way -= 1
        if self._last is turn:
            self._last = None
        if answer.cancelled() or (failure := answer.exception()) is not None:
            log.error("journal frame failed, its messages stay unconfirmed", reason=str(failure))
            turn.end()
        elif fenced := answer.result().fenced:
            self._write_rest(turn, {number for lease in fenced if (number := partition_in(lease)) is not None})
        else:
            for content, partitions, ticket in turn.contents:
                _tell_persisted(content, partitions)
                ticket.part_done()
            for waiter in turn.waiters:
                waiter.part_done()
            turn.end()

    def _write_rest(self, turn: _Turn, fenced: set[int]) -> None:
        lost = {changes.partition for changes in turn.changes if changes.partition.number in fenced}
        turn.changes = [changes for changes in turn.changes if changes.partition not in lost]
        left = []
        for content, partitions, ticket in turn.contents:
            for number in fenced & partitions.keys():
                lost.add(partitions.pop(number))
                for queue_id, first, count, _ in content.entries.pop(number).runs:
                    ticket.refuse(first, count, queue_id, queue_pb2.NOT_OWNER)
            if partitions:
                left.append((content, partitions, ticket))
            else:
                ticket.part_done()
        turn.contents = left
        for partition in lost:
            self._on_fenced(partition)
        if turn.changes or turn.contents:
            self._write(turn)
        else:
            self._follow(turn.waiters)
            turn.end()


def _tell_persisted(content: ContentDraft, partitions: dict[int, Partition]) -> None:
    for number, entries in content.entries.items():
        partition = partitions[number]
        if not partition.context.recorder.on:
            return
        for queue_id, first, count, _ in entries.runs:
            if queue := partition.queues.get(queue_id):
                queue.record.persisted(span(content.source.batch.uids, first, count))


def _add_changes(frame: store_pb2.JournalFrame, changes: _Changes) -> None:
    for batch, indexes in changes.dequeues.items():
        frame.dequeues.add(batch=batch, indexes=indexes)
    for batch, upto in changes.delivered.items():
        frame.delivered.add(batch=batch, upto=upto)
    for origin, uid in changes.watermarks.items():
        frame.watermarks.add(partition=changes.partition.number, origin=origin, uid=uid)
