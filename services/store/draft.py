"""A commit group while it is put together: frames go in one after the other, one `Changes` comes out."""

from __future__ import annotations

from services.rpc.store_pb2 import Content, Dequeue, EntryBatch, JournalFrame
from services.store.live import Live, LiveContent
from services.store.provider import Changes, DequeueRow, EntryRow

# What is larger fits no signed 64-bit column.
LIMIT = 1 << 63


class Draft:
    """The counts in `live` change at once; the group is written later, again and again until it is on disk."""

    def __init__(self, live: Live, at: int) -> None:
        self._live = live
        self._changes = Changes(at=at)
        self._dequeues: dict[int, list[bytes]] = {}
        self.traced: list[bytes] = []
        """Contexts of messages in it that get spans."""

    @property
    def changes(self) -> Changes:
        """What may be added to directly: everything but the journal's own tables."""
        return self._changes

    def fault(self, frame: JournalFrame) -> str:
        """Why `frame` cannot be written by anyone, or "" when it can."""
        brought = {content.id for content in frame.contents}
        for batch in frame.entries:
            if batch.id >= LIMIT or batch.content >= LIMIT or not batch.count:
                return f"entry batch {batch.id} on content {batch.content} with {batch.count} entries is out of range"
            if batch.content not in brought and not self._holds(batch.content):
                return f"entry batch {batch.id} refers to content {batch.content}, which the store does not have whole"
        if frame.sequence >= LIMIT:
            return f"sequence {frame.sequence} is out of range"
        if any(mark.uid >= LIMIT or mark.origin >= LIMIT for mark in frame.watermarks):
            return "a watermark is out of range"
        return ""

    def add(self, frame: JournalFrame) -> None:
        """Puts in a frame without a fault."""
        if frame.traced:
            self.traced.extend(frame.traced)
        if frame.entries:
            self._add_entries(frame)
        for dequeue in frame.dequeues:
            self._dequeue(dequeue)
        for delivered in frame.delivered:
            self._deliver(delivered.batch, delivered.upto)
        marks = self._changes.watermarks
        for mark in frame.watermarks:
            key = (mark.partition, mark.origin)
            marks[key] = max(marks.get(key, 0), mark.uid)

    def finish(self) -> Changes:
        """The group as it is to be written."""
        live, rows = self._live.batches, self._changes.dequeues
        for batch, parts in self._dequeues.items():
            rows.append(DequeueRow(batch, live[batch].left, b"".join(parts)))
        self._dequeues.clear()
        return self._changes

    def _holds(self, content: int) -> bool:
        found = self._live.contents.get(content)
        return found is not None and found.whole

    def _add_entries(self, frame: JournalFrame) -> None:
        brought = {content.id: content for content in frame.contents}
        for batch in frame.entries:
            if batch.id in self._live.batches:
                continue
            content = self._content(batch.content, brought.get(batch.content))
            self._live.add(batch.id, content, batch.count)
            self._changes.entries[batch.id] = _row(batch)

    def _content(self, number: int, brought: Content | None) -> LiveContent:
        """The content, written unless it is on disk as it came."""
        found = self._live.contents.get(number)
        if found is not None and found.whole:
            return found
        assert brought is not None, "a fault of the frame"
        columns = brought.columns
        if found is None:
            found = self._live.contents[number] = LiveContent(number, len(columns))
        found.whole = True
        self._changes.contents[number] = columns
        return found

    def _dequeue(self, dequeue: Dequeue) -> None:
        batch = dequeue.batch
        if batch not in self._live.batches:
            return
        dead = self._live.remove(batch, len(dequeue.indexes), self._changes.at)
        if dead is None:
            self._dequeues.setdefault(batch, []).append(dequeue.SerializeToString())
            return
        self._dequeues.pop(batch, None)
        self._changes.delivered.pop(batch, None)
        # What comes and goes within one group never touches the disk.
        if self._changes.entries.pop(batch, None) is None:
            self._changes.dead_batches.append(batch)
        content = dead.content
        if content.references == 0:
            self._bury(content.id)

    def _bury(self, content: int) -> None:
        # Written in this group or not, an older form of it may be on disk.
        self._changes.contents.pop(content, None)
        self._changes.dead_contents.append(content)

    def _deliver(self, batch: int, upto: int) -> None:
        if batch in self._live.batches:
            delivered = self._changes.delivered
            delivered[batch] = max(delivered.get(batch, 0), upto)


def _row(batch: EntryBatch) -> EntryRow:
    return EntryRow(batch.id, batch.partition, batch.content, batch.count, batch.entries)
