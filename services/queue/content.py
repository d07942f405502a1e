"""A publish batch on its way to disk: as it came when all of it is durable, else the durable messages alone."""

from __future__ import annotations

from services.queue.journal_draft import ContentDraft, EntryDraft
from services.rpc import store_pb2
from services.rpc.queue_pb2 import PublishBatch, PublishRun, Traced


class Source:
    """What a batch was decoded from, for `ContentDraft.source`."""

    __slots__ = ("batch", "raw", "uids")

    def __init__(self, raw: bytes, batch: PublishBatch) -> None:
        self.raw = raw
        self.batch = batch
        self.uids = list(batch.uids)

    @property
    def size(self) -> int:
        """Bytes that it takes on disk, at most."""
        return len(self.raw)


def add_content(frame: store_pb2.JournalFrame, draft: ContentDraft, content_id: int) -> None:
    """Adds the content and its entry batches to a frame."""
    source: Source = draft.source
    wanted = _wanted(draft)
    if len(wanted) == len(source.batch.uids):
        columns, places = source.raw, None
    else:
        kept = sorted(wanted)
        columns = _subset(source.batch, kept).SerializeToString()
        places = {index: place for place, index in enumerate(kept)}
    frame.contents.add(id=content_id, columns=columns)
    if source.batch.traced:
        frame.traced.extend([one.context for one in source.batch.traced if one.index in wanted])
    for partition, entries in draft.entries.items():
        frame.entries.add(
            id=entries.id,
            partition=partition,
            content=content_id,
            count=entries.total,
            entries=_columns(entries, places).SerializeToString(),
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


def _subset(batch: PublishBatch, kept: list[int]) -> PublishBatch:
    """A batch of the messages at the indexes `kept`, ascending."""
    subset = PublishBatch(time_ms=batch.time_ms)
    wanted, start, own = set(kept), 0, 0
    uids, bodies, properties = batch.uids, batch.bodies, batch.properties
    for number, run in enumerate(batch.runs):
        mine = [index for index in range(start, start + run.count) if index in wanted]
        shared = run.HasField("shared_properties")
        if mine:
            kept_run = PublishRun()
            kept_run.CopyFrom(run)
            kept_run.count = len(mine)
            subset.runs.append(kept_run)
            subset.times_ms.extend(batch.times_ms[number : number + 1])
            subset.uids.extend([uids[index] for index in mine])
            subset.bodies.extend([bodies[index] for index in mine])
            if not shared:
                subset.properties.extend([properties[own + index - start] for index in mine])
        start += run.count
        own += 0 if shared else run.count
    places = {index: place for place, index in enumerate(kept)} if batch.traced else {}
    subset.traced.extend(
        Traced(index=places[one.index], context=one.context) for one in batch.traced if one.index in places
    )
    return subset
