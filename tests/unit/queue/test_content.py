"""What of a publish batch goes to disk."""

from __future__ import annotations

from itertools import count

from services.common.message.columns import facts_in, properties_in, put
from services.queue.journal.content import Source, add_content
from services.queue.machine.columns import Columns
from services.queue.machine.journal_draft import ContentDraft
from services.queue.machine.message import Interned
from services.rpc import store_pb2
from services.rpc.queue_pb2 import PublishBatch
from tests.support.messages import facts


def draft() -> ContentDraft:
    batch = PublishBatch(uids=range(1, 7), bodies=[bytes([number]) for number in range(6)], time_ms=9)
    put(batch, [facts(routing_key=str(number % 2)) for number in range(6)], [b"a", b"b", b"s", b"s", b"c", b"d"])
    return ContentDraft(
        count(1).__next__, Source(batch.SerializeToString(), batch, Columns(batch, list(batch.bodies), Interned()))
    )


def written(content: ContentDraft) -> tuple[store_pb2.JournalFrame, PublishBatch]:
    frame = store_pb2.JournalFrame()
    add_content(frame, content, 50)
    return frame, PublishBatch.FromString(frame.contents[0].columns)


def test_whole_batch_as_it_came() -> None:
    """When every message is durable the bytes of the batch go on untouched."""
    content = draft()
    for first in (0, 2, 4):
        content.enlist(3, 7, range(first, first + 2), 100 + first)
    frame, _ = written(content)
    assert frame.contents[0].columns == content.source.raw
    assert [(entries.partition, entries.count, entries.content) for entries in frame.entries] == [(3, 6, 50)]


def test_only_what_is_durable() -> None:
    """Else a batch of the durable ones is made, and the entries refer to their places in it."""
    content = draft()
    part = content.enlist(3, 7, range(3, 4), 100)
    content.enlist(3, 7, range(4, 6), 101)
    content.enlist(3, 8, range(4, 6), 0)
    frame, batch = written(content)
    assert (list(batch.uids), properties_in(batch), batch.time_ms) == ([4, 5, 6], [b"s", b"c", b"d"], 9)
    assert [each.routing_key for each in facts_in(batch)] == ["1", "0", "1"]
    columns = store_pb2.EntryColumns.FromString(frame.entries[0].entries)
    assert (list(columns.queue_id), list(columns.first), list(columns.count)) == ([7, 7, 8], [0, 1, 1], [1, 2, 2])
    assert 100 - part.base == 0


def test_every_other_message() -> None:
    """Messages of a queue that are not neighbours in the batch follow one another in the journal."""
    content = draft()
    content.enlist(3, 7, [1, 3, 5], 100)
    part = content.enlist(3, 8, [0, 2, 3], 10)
    frame, batch = written(content)
    assert list(batch.uids) == [1, 2, 3, 4, 6]
    columns = store_pb2.EntryColumns.FromString(frame.entries[0].entries)
    assert (list(columns.first), list(columns.count)) == ([1, 3, 4, 0, 2], [1, 1, 1, 1, 2])
    assert list(columns.position) == [100, 101, 102, 10, 11]
    assert [place - part.base for place in (10, 11, 12)] == [3, 4, 5]
