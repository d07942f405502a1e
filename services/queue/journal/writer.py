"""From the drafts of a turn to journal frames, and from their answers to `done`.

One frame a turn at most. Where another process holds a lease in it, the store leaves out that partition's changes; the
messages for it are refused, so that their publishers send them to its owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import structlog

from services.common.clock import monotonic
from services.common.containment import by_itself, contained, for_each
from services.common.errors import PreconditionFailed
from services.common.ledger.uid_ranges import span
from services.common.message.weight import FRAME_BYTES
from services.common.partition import partition_in
from services.common.topology.slots import SlotId
from services.common.uid import UidSource, origin_of
from services.queue.journal.content import add_content, add_notes
from services.queue.journal.known import Departure
from services.queue.journal.ticket import Part, Ticket
from services.queue.machine.journal_draft import Changes, ContentDraft
from services.queue.partitions.partition import Partition, PartitionState
from services.rpc import queue_pb2, store_pb2

log = structlog.get_logger()

_DO = "see in the log of the store why it refused the frame"

_INDEX = 5  # bytes of a dequeued entry in a frame, at most
# A frame dequeues from about so many batches at most, since it is one turn here and in the store; and from so many of
# one partition at least, while others have much to dequeue as well.
_DEQUEUES, _OF_ONE = 10_000, 1000


class Journal(Protocol):
    """The store's client."""

    def append(self, frame: store_pb2.JournalFrame) -> asyncio.Future[store_pb2.JournalAck]: ...


@dataclass(slots=True)
class _Changes:
    """What one partition has for a frame."""

    partition: Partition
    drafted: Changes


@dataclass(slots=True)
class _Turn:
    """A frame before it is encoded, kept until the store has it."""

    changes: list[_Changes] = field(default_factory=list)
    contents: list[tuple[ContentDraft, dict[int, Partition], Ticket]] = field(default_factory=list)
    waiters: list[Part] = field(default_factory=list)
    drained: list[asyncio.Future[None]] = field(default_factory=list)

    def end(self) -> None:
        """The frame has been answered, or has failed."""
        for future in self.drained:
            if not future.done():
                future.set_result(None)


class JournalWriter:
    """`on_fenced` is called with partitions that the store says another process holds."""

    def __init__(self, journal: Journal, ids: UidSource, on_fenced: Callable[[Partition], None]) -> None:
        self._journal = journal
        self._ids = ids
        self._on_fenced = on_fenced
        self._turn = _Turn()
        self._dirty: dict[int, Partition] = {}
        self._scheduled = False
        self._under_way = 0
        self._last: _Turn | None = None
        self._rest = False  # a large queue was purged or deleted: not all its dequeues had room in a frame …
        self._portion: _Turn | None = None  # … the others follow when the store has this one, so that others get a turn
        self._size = 0  # of the contents of the turn

    # -------------------------------------------------------------- what is to be written

    def touch(self, partition: Partition) -> None:
        """The partition's draft is not empty any more."""
        self._dirty[partition.number] = partition
        self._schedule()

    def add(self, content: ContentDraft, partitions: dict[int, Partition], ticket: Ticket) -> None:
        """Adds the enlisted messages of a batch; a part of the ticket is done when they are on disk."""
        ticket.pending += 1
        self._turn.contents.append((content, {number: partitions[number] for number in content.entries}, ticket))
        self._size += content.source.size
        if self._size < FRAME_BYTES:
            self._schedule()
        else:
            self.flush()  # a frame has to be of a size that the store takes

    def barrier(self, ticket: Part) -> None:
        """A part of the ticket is done when everything that was added so far is on disk."""
        if not self._under_way and not self._scheduled:
            return
        ticket.pending += 1
        self._turn.waiters.append(ticket)
        self._schedule()

    def stage(
        self,
        transaction: int,
        contents: list[ContentDraft],
        dequeues: dict[int, list[int]],
        fences: list[Partition],
        *,
        alone: bool,
    ) -> list[asyncio.Future[store_pb2.JournalAck]]:
        """Writes a transaction's parts, after everything that was added before: applied when the store commits them.

        What no other process takes part in, and is one frame, the store commits with it.
        """
        new = partial(store_pb2.JournalFrame, transaction=transaction, fences=[each.fence for each in fences])
        frames, size = [new()], 0
        for content in contents:
            if size and size + content.source.size > FRAME_BYTES:
                frames.append(new())
                size = 0
            add_content(frames[-1], content, self._ids.take()[0])
            size += content.source.size
        for batch, indexes in dequeues.items():
            if size > FRAME_BYTES:
                frames.append(new())
                size = 0
            frames[-1].dequeues.add(batch=batch, indexes=indexes)
            size += _INDEX * len(indexes)
            for partition in fences:
                self._add_departures(frames[-1], partition, batch, partition.known.departing(batch, again=True))
        frames[-1].decides = alone and len(frames) == 1
        return [self.append(frame) for frame in frames]

    def append(self, frame: store_pb2.JournalFrame) -> asyncio.Future[store_pb2.JournalAck]:
        """Writes a frame of its own, after everything that was added before."""
        self.flush()
        return self._journal.append(frame)

    async def drained(self) -> None:
        """Returns when everything that was added so far is on disk, without waiting for what is added later."""
        again = True
        while again:
            self.flush()
            again = self._rest
            if self._last is not None:
                drained: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._last.drained.append(drained)
                await drained

    def flush(self) -> None:
        """Writes what there is now."""
        self._scheduled = False
        turn, self._turn = self._turn, _Turn()
        self._size = 0
        self._take_changes(turn)
        if turn.changes or turn.contents:
            self._write(turn)
        elif turn.waiters:
            self._follow(turn.waiters)

    def _take_changes(self, turn: _Turn) -> None:
        dirty, self._dirty = self._dirty, {}
        room = 0 if self._portion else max(_OF_ONE, _DEQUEUES // max(1, len(dirty)))
        for number, partition in dirty.items():
            if (
                partition.state is PartitionState.GONE
            ):  # changes of a former term have no fence, even if it is here again
                continue
            draft = partition.context.draft
            drafted = draft.take(room)
            if drafted.dequeues or drafted.delivered or drafted.notes:  # else the changed entries were not on disk
                turn.changes.append(_Changes(partition, drafted))
            if draft:
                self._dirty[number] = partition
        self._rest = bool(self._dirty)
        if self._rest:
            # What waits for all that was added so far has to wait for the rest too.
            self._turn.waiters, turn.waiters = turn.waiters, []
            self._portion = self._portion or turn

    def _go_on(self, turn: _Turn) -> None:
        if turn is self._portion:
            self._portion = None
            self._schedule()

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
        fences: dict[int, Partition] = {}
        try:
            answer = self._journal.append(self._frame(turn, fences))
        except Exception as fault:  # noqa: BLE001 - this turn's, and others follow
            contained("making a journal frame", fault)
            self._give_up(turn)
            self._go_on(turn)
            return
        self._under_way += 1
        self._last = turn
        answer.add_done_callback(partial(self._answered, turn, fences))

    def _frame(self, turn: _Turn, fences: dict[int, Partition]) -> store_pb2.JournalFrame:
        frame = store_pb2.JournalFrame(apart=True)
        for content, partitions, _ in turn.contents:
            add_content(frame, content, self._ids.take()[0])
            fences.update(partitions)
        _add_floors(frame, turn)
        for changes in turn.changes:
            fences[changes.partition.number] = changes.partition
            self._add_changes(frame, changes)
        frame.fences.extend([partition.fence for partition in fences.values()])
        return frame

    def _add_changes(self, frame: store_pb2.JournalFrame, changes: _Changes) -> None:
        partition, drafted = changes.partition, changes.drafted
        if drafted.notes:
            add_notes(frame, partition.number, drafted.notes_id, drafted.notes)
        for batch, indexes in drafted.dequeues.items():
            frame.dequeues.add(batch=batch, indexes=indexes)
            self._add_departures(frame, partition, batch, partition.known.departing(batch))
        for batch, upto in drafted.delivered.items():
            frame.delivered.add(batch=batch, upto=upto)

    def _add_departures(
        self, frame: store_pb2.JournalFrame, partition: Partition, batch: int, departures: Iterable[Departure]
    ) -> None:
        for origin, upto, columns in departures:
            frame.taken.add(
                id=self._ids.take()[0],
                partition=partition.number,
                origin=origin,
                upto=upto,
                messages=columns.SerializeToString(),
            )
            frame.taken_of.append(batch)

    def _answered(
        self, turn: _Turn, partitions: dict[int, Partition], answer: asyncio.Future[store_pb2.JournalAck]
    ) -> None:
        self._under_way -= 1
        if self._last is turn:
            self._last = None
        failure = None if answer.cancelled() else answer.exception()
        if answer.cancelled() or failure is not None:
            log.error("journal frame failed, its messages are not confirmed", reason=str(failure), do=_DO)
            if isinstance(failure, PreconditionFailed):
                self._give_up(turn)
        else:
            fenced = {number for lease in answer.result().fenced if (number := partition_in(lease)) is not None}
            # Before all else: what has waited for the frame asks whether the partition is still here.
            for_each("giving a partition up", fenced, lambda number: self._on_fenced(partitions[number]))
            for_each("answering what is on disk", turn.contents, partial(_answer, fenced))
            for_each("going on after what is on disk", turn.waiters, lambda waiter: waiter.part_done())
        turn.end()
        self._go_on(turn)

    def _give_up(self, turn: _Turn) -> None:
        """The frame cannot be written. Frames behind it, already under way, leave out the floors that it had."""
        if turn is self._portion:  # those that wait for the rest wait for this frame too
            turn.waiters, self._turn.waiters = self._turn.waiters, []
        _refuse_all(turn)
        partitions = {each.number: each for _, its, _ in turn.contents for each in its.values()}
        frame, now = store_pb2.JournalFrame(fences=[each.fence for each in partitions.values()]), monotonic()
        for partition in partitions.values():
            for origin in partition.known.origins():
                _add_floor(frame, partition, origin, now)
        if frame.floors:
            self._journal.append(frame).add_done_callback(partial(_floors_written, list(partitions.values())))


def _answer(fenced: AbstractSet[int], written: tuple[ContentDraft, dict[int, Partition], Ticket]) -> None:
    content, partitions, ticket = written
    _refuse_fenced(content, fenced, ticket)
    by_itself("telling what is on disk", lambda: _tell_persisted(content, partitions))
    ticket.part_done()


def _refuse_fenced(content: ContentDraft, fenced: AbstractSet[int], ticket: Ticket) -> None:
    for number in fenced & content.entries.keys():
        for queue_id, indexes in _by_queue(range(len(content.source.uids)), content.entries.pop(number).runs):
            ticket.turn_away(number, indexes, queue_id)


def _add_floors(frame: store_pb2.JournalFrame, turn: _Turn) -> None:
    floors: dict[tuple[int, int], Partition] = {}
    for content, partitions, _ in turn.contents:
        origin = origin_of(content.source.uids[0])
        floors.update(((number, origin), partition) for number, partition in partitions.items())
    now = monotonic()
    for (_, origin), partition in floors.items():
        _add_floor(frame, partition, origin, now)


def _add_floor(frame: store_pb2.JournalFrame, partition: Partition, origin: int, now: float) -> None:
    floor = partition.known.floor_due(origin, now)
    if floor is not None:
        frame.floors.add(partition=partition.number, origin=origin, uid=floor)


def _floors_written(partitions: list[Partition], answer: asyncio.Future[store_pb2.JournalAck]) -> None:
    if answer.cancelled() or answer.exception():
        _lose_floors(partitions)


def _lose_floors(partitions: Iterable[Partition]) -> None:
    for partition in partitions:
        partition.known.floors_lost()


def _refuse_all(turn: _Turn) -> None:
    """Tells the publishers of the frame's messages, and everything that has waited for it, that it failed."""
    for_each("telling that it cannot be written", turn.contents, _refuse)
    for_each("telling that it cannot be written", turn.waiters, lambda waiter: waiter.part_failed())
    turn.end()


def _refuse(unwritten: tuple[ContentDraft, dict[int, Partition], Ticket]) -> None:
    content, partitions, ticket = unwritten
    _lose_floors(partitions.values())
    for entries in content.entries.values():
        for queue_id, indexes in _by_queue(range(len(content.source.uids)), entries.runs):
            ticket.refuse(indexes, queue_id, queue_pb2.OTHER)
    ticket.not_safe()
    ticket.part_done()


def _tell_persisted(content: ContentDraft, partitions: dict[int, Partition]) -> None:
    for number, entries in content.entries.items():
        partition = partitions[number]
        if not partition.recorder.on:
            return
        for queue_id, uids in _by_queue(content.source.uids, entries.runs):
            if queue := partition.queues.get(queue_id):
                queue.record.persisted(uids)


def _by_queue(
    column: Sequence[int], runs: list[tuple[SlotId, int, int, int]]
) -> Iterable[tuple[SlotId, Sequence[int]]]:
    """The values of a column (uids, or indexes) for the messages of each queue."""
    if len(runs) == 1:
        queue_id, first, count, _ = runs[0]
        return ((queue_id, span(column, first, count)),)
    found: dict[SlotId, list[int]] = {}
    for queue_id, first, count, _ in runs:
        found.setdefault(queue_id, []).extend(column[first : first + count])
    return found.items()
