"""A publish batch on its way to disk: as it was received when all of it is durable, else the durable messages alone."""

from __future__ import annotations

from collections.abc import Sequence

from services.common.message.columns import put
from services.common.message.indexes import pick
from services.queue.machine.columns import Columns, Raw
from services.queue.machine.journal_draft import ContentDraft, EntryDraft, Note
from services.rpc import store_pb2
from services.rpc.queue_pb2 import PublishBatch, Traced


class Source:
    """A batch, as received and decoded, for `ContentDraft.source`. `is_whole`: its bodies are in `raw`."""

    __slots__ = ("columns", "is_whole", "raw", "size", "traced")

    def __init__(self, raw: Raw, batch: PublishBatch, columns: Columns) -> None:
        self.raw = raw
        self.columns = columns
        self.is_whole = not batch.shared_sizes
        self.size = len(raw) + sum(batch.shared_sizes)  # bytes that it takes on disk, at most
        self.traced = list(batch.traced)

    @property
    def uids(self) -> list[int]:
        """The uids of all messages."""
        return self.columns.uids


def add_content(frame: store_pb2.JournalFrame, draft: ContentDraft, content_id: int) -> None:
    """Adds the content and its entry batches to a frame."""
    source: Source = draft.source
    _add_notes(frame, draft)
    if not (wanted := _wanted(draft)):
        return
    if len(wanted) == len(source.uids) and source.is_whole:
        columns, places = bytes(source.raw), None
    else:
        kept = sorted(wanted)
        columns = _subset(source, kept).SerializeToString()
        places = {index: place for place, index in enumerate(kept)}
    frame.contents.add(id=content_id, columns=columns)
    if source.traced:
        frame.traced.extend([one.context for one in source.traced if one.index in wanted])
    for partition, entries in draft.entries.items():
        if entries.total:
            frame.entries.add(
                id=entries.id,
                partition=partition,
                content=content_id,
                count=entries.total,
                entries=_columns(entries, places).SerializeToString(),
            )


def _add_notes(frame: store_pb2.JournalFrame, draft: ContentDraft) -> None:
    for partition, entries in draft.entries.items():
        if entries.notes:
            add_notes(frame, partition, entries.notes_id, entries.notes)


def add_notes(frame: store_pb2.JournalFrame, partition: int, batch: int, notes: Sequence[Note]) -> None:
    """Adds what features keep, as a batch of its own: on a content without messages, so that it keeps none alive."""
    columns = store_pb2.EntryColumns(notes=[store_pb2.Note(**note._asdict()) for note in notes])
    frame.contents.add(id=batch)
    frame.entries.add(
        id=batch, partition=partition, content=batch, count=len(notes), entries=columns.SerializeToString()
    )


def _wanted(draft: ContentDraft) -> set[int] | range:
    ranges = {(first, first + count) for entries in draft.entries.values() for _, first, count, _ in entries.runs}
    if len(ranges) == 1:
        return range(*ranges.pop())
    return {index for first, end in ranges for index in range(first, end)}


def _columns(entries: EntryDraft, places: dict[int, int] | None) -> store_pb2.EntryColumns:
    # A run of the batch is kept or left as a whole range, so what was consecutive still is.
    return store_pb2.EntryColumns(
        queue_id=[queue_id for queue_id, _, _, _ in entries.runs],
        first=[first if places is None else places[first] for _, first, _, _ in entries.runs],
        count=[count for _, _, count, _ in entries.runs],
        position=[position for _, _, _, position in entries.runs],
    )


def _subset(source: Source, kept: list[int]) -> PublishBatch:
    """A batch of the messages at the indexes `kept`, ascending."""
    its = source.columns
    subset = PublishBatch(uids=pick(its.uids, kept), bodies=map(bytes, pick(its.bodies, kept)))
    put(subset, pick(its.facts, kept), pick(its.properties, kept))
    if isinstance(its.times, int):
        subset.time_ms = its.times
    else:
        subset.times_ms.extend(pick(its.times, kept))
    places = {index: place for place, index in enumerate(kept)} if source.traced else {}
    subset.traced.extend(
        Traced(index=places[one.index], context=one.context) for one in source.traced if one.index in places
    )
    return subset
