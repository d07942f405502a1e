"""Frames that put into the journal what the next owner of a partition would not find there.

That is every entry that is not on disk, and every unsettled one, on disk or not: it is written anew with the gateway
that holds it, and its former place in the journal is dequeued in the same frame. So is an entry that was delivered more
than once, where its queue has a delivery limit, or that was given back untried there: the journal says one attempt.
Positions are those that the entries have in their queues, so the next owner sees one order, whenever they were written.
The frames also carry what is known of messages that may be resent, and what features keep that is not in the journal.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from services.common.message.columns import put
from services.common.topology.slots import SlotId
from services.queue.journal.content import add_notes
from services.queue.machine.context import DeadLetter
from services.queue.machine.entry import ACQUIRED, Entry, Holder
from services.queue.machine.journal_draft import Note
from services.queue.machine.message import Message
from services.queue.machine.options import QueueOptions
from services.queue.machine.queue import Queue
from services.queue.partitions.partition import Partition
from services.rpc.queue_pb2 import PublishBatch, Traced
from services.rpc.store_pb2 import EntryColumns, JournalAck, JournalFrame

_AT_ONCE = 2000
# Of messages in a frame: three processes have it in memory several times, each in another form, and keep that room.
_BYTES = 1 << 20
_NOTES_AT_ONCE = 10_000
_UNDER_WAY = 4
"""Frames that the store has not answered: while it writes one, the next are on their way and in its next commit."""


class Row(NamedTuple):
    """An entry of a queue; `held_by`: origin of the gateway that has it, or 0."""

    queue_id: SlotId
    entry: Entry
    held_by: int


def unwritten(partition: Partition, letters: Iterable[DeadLetter]) -> list[Row]:
    """The entries to be written now; `letters` are dead letters under way, which go back to their queues."""
    rows = [Row(each.queue.queue_id, each.entry, 0) for each in letters if _is_news(each.queue, each.entry)]
    for queue in partition.queues.values():
        rows.extend(_unwritten(queue, partition.undecided))
    return rows


def frames(partition: Partition, rows: Iterable[Row], take_id: Callable[[], int]) -> Iterator[JournalFrame]:
    """Frames of bounded size that put `rows` into the journal."""
    frame = _begun(partition, take_id)
    for some in _chunks(rows):
        _add_rows(frame, partition, some, take_id)
        yield frame
        frame = JournalFrame(fences=[partition.fence])
    if frame.taken:
        yield frame
    for portion in _notes(partition):
        frame = JournalFrame(fences=[partition.fence])
        add_notes(frame, partition.number, take_id(), portion)
        yield frame


async def in_order(
    them: Iterable[JournalFrame],
    append: Callable[[JournalFrame], asyncio.Future[JournalAck]],
    wanted: Callable[[], bool],
) -> bool:
    """Appends them, a few at a time, while they are `wanted`; False when the store knows of a later owner."""
    under_way: deque[asyncio.Future[JournalAck]] = deque()
    try:
        for frame in them:
            if not wanted():
                return True
            if len(under_way) == _UNDER_WAY and (await under_way.popleft()).fenced:
                return False
            under_way.append(append(frame))
        while under_way:
            if (await under_way.popleft()).fenced:
                return False
    finally:
        for each in under_way:  # nobody waits for these answers
            each.add_done_callback(_heard)
            each.cancel()
    return True


def _heard(answer: asyncio.Future[JournalAck]) -> None:
    """A fault that is not asked for would be logged."""
    if not answer.cancelled():
        answer.exception()


def _notes(partition: Partition) -> list[list[Note]]:
    """All of them now: a queue may be deleted between two frames."""
    notes = [note for queue in partition.queues.values() for note in queue.features.unwritten()]
    return [notes[at : at + _NOTES_AT_ONCE] for at in range(0, len(notes), _NOTES_AT_ONCE)]


def _begun(partition: Partition, take_id: Callable[[], int]) -> JournalFrame:
    frame, number, known = JournalFrame(fences=[partition.fence]), partition.number, partition.known
    for origin in known.origins():
        frame.floors.add(partition=number, origin=origin, uid=known.floor(origin))
    for origin, upto, columns in known.handed_over():
        messages = columns.SerializeToString()
        frame.taken.add(id=take_id(), partition=number, origin=origin, upto=upto, messages=messages, whole=True)
    return frame


def _unwritten(queue: Queue, undecided: AbstractSet[object]) -> Iterator[Row]:
    options = queue.options
    for entry in queue.entries():
        held = entry.state == ACQUIRED
        # An undecided transaction may still commit: it dequeues its entries at their present place in the journal.
        news = (
            entry.holder not in undecided if held else _is_news(options, entry) or queue.features.was_given_back(entry)
        )
        if news or entry.part is None:
            yield Row(options.queue_id, entry, _origin_of(entry.holder) if held else 0)


def _origin_of(holder: object) -> int:
    """Who will say what becomes of it; 0: nobody, as of what was to be moved."""
    return holder.origin if isinstance(holder, Holder) and not holder.moves else 0


def _is_news(options: QueueOptions, entry: Entry) -> bool:
    """Whether an entry that no gateway holds has to be written: the journal has no count of its deliveries."""
    return entry.part is None or (options.delivery_limit is not None and entry.attempts > 1)


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    chunk: list[Row] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += len(row.entry.message.body) + len(row.entry.message.properties)
        if len(chunk) == _AT_ONCE or size >= _BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _add_rows(frame: JournalFrame, partition: Partition, rows: list[Row], take_id: Callable[[], int]) -> None:
    content, batch = take_id(), take_id()
    columns = _content([row.entry.message for row in rows])
    if (journeys := partition.journeys) is not None and journeys.live:
        contexts = ((index, journeys.context_of(row.entry.message.uid)) for index, row in enumerate(rows))
        columns.traced.extend(Traced(index=index, context=context) for index, context in contexts if context)
    frame.contents.add(id=content, columns=columns.SerializeToString())
    frame.entries.add(
        id=batch,
        partition=partition.number,
        content=content,
        count=len(rows),
        entries=_columns(rows, partition.epoch).SerializeToString(),
    )
    given_up: dict[int, list[int]] = {}
    for _, entry, _ in rows:
        if entry.part is not None:
            given_up.setdefault(entry.part.batch, []).append(entry.position - entry.part.base)
    for former, indexes in given_up.items():
        frame.dequeues.add(batch=former, indexes=indexes)


def _columns(rows: list[Row], epoch: int) -> EntryColumns:
    """Runs of entries that follow one another in a queue and are alike."""
    columns = EntryColumns(epoch=epoch)
    expected: tuple[SlotId, int, int, int, int] | None = None
    for index, (queue_id, entry, held_by) in enumerate(rows):
        place = (queue_id, entry.position, entry.attempts, held_by, entry.expires)
        if place == expected:
            columns.count[-1] += 1
        else:
            columns.queue_id.append(queue_id)
            columns.first.append(index)
            columns.count.append(1)
            columns.position.append(entry.position)
            columns.attempts.append(entry.attempts)
            columns.held_by.append(held_by)
            columns.expires.append(entry.expires)
        expected = (queue_id, entry.position + 1, entry.attempts, held_by, entry.expires)
    return columns


def _content(messages: list[Message]) -> PublishBatch:
    batch = PublishBatch(times_ms=[message.received for message in messages])
    batch.uids.extend([message.uid for message in messages])
    batch.bodies.extend([bytes(message.body) for message in messages])
    put(batch, [message.facts for message in messages], [message.properties for message in messages])
    return batch
