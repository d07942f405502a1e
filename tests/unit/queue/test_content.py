"""What of a publish batch goes to disk."""

from __future__ import annotations

from itertools import count

from services.queue.content import Source, add_content
from services.queue.journal_draft import ContentDraft
from services.rpc import store_pb2
from services.rpc.queue_pb2 import PublishBatch, PublishRun


def draft() -> ContentDraft:
    batch = PublishBatch(
        uids=range(1, 7),
        properties=[b"a", b"b", b"c", b"d"],
        bodies=[bytes([number]) for number in range(6)],
        runs=[PublishRun(count=2), PublishRun(count=2, shared_properties=b"s"), PublishRun(count=2)],
        time_ms=9,
    )
    return ContentDraft(count(1).__next__, Source(batch.SerializeToString(), batch))


def written(content: ContentDraft) -> tuple[store_pb2.JournalFrame, PublishBatch]:
    frame = store_pb2.JournalFrame()
    add_content(frame, content, 50)
    return frame, PublishBatch.FromString(frame.contents[0].columns)


def test_whole_batch_as_it_came() -> None:
    """When every message is durable the bytes of the batch go on untouched."""
    content = draft()
    for first in (0, 2, 4):
        content.enlist(3, 7, first, 0, 2, 100 + first)
    frame, _ = written(content)
    assert frame.contents[0].columns == content.source.raw
    assert [(entries.partition, entries.count, entries.content) for entries in frame.entries] == [(3, 6, 50)]


def test_only_what_is_durable() -> None:
    """Else a batch of the durable ones is made, and the entries refer to their places in it."""
    content = draft()
    part, _ = content.enlist(3, 7, 2, 1, 1, 100)
    content.enlist(3, 7, 4, 0, 2, 101)
    content.enlist(3, 8, 4, 0, 2, 0)
    frame, batch = written(content)
    assert (list(batch.uids), list(batch.properties), batch.time_ms) == ([4, 5, 6], [b"c", b"d"], 9)
    columns = store_pb2.EntryColumns.FromString(frame.entries[0].entries)
    assert (list(columns.queue_id), list(columns.first), list(columns.count)) == ([7, 7, 8], [0, 1, 1], [1, 2, 2])
    assert 100 - part.base == 0


def test_staged() -> None:
    """Entries of a run that was staged find their places, in the journal and in the queue, by its beginning."""
    content = draft()
    content.stage(3, 7, 0, 2, 100)
    content.stage(3, 7, 2, 2, 102)
    part, position = content.enlist(3, 7, 2, 1, 1, 500)
    assert (part.batch, position - part.base, position) == (1, 3, 103)
