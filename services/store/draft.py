"""A commit group while it is being made: frames go in one after the other, one `Changes` comes out."""

from __future__ import annotations

import math
from collections.abc import Collection, Container

from services.common.partition import lease_name
from services.rpc.store_pb2 import Content, Dequeue, EntryBatch, JournalFrame
from services.store.live import Live, LiveBatch, LiveContent
from services.store.provider import Changes, DequeueRow, EntryRow, TakenRow

# Numbers from here on do not fit into a signed 64-bit column.
LIMIT = 1 << 63


class Draft:
    """Changes `live` at once; the group is written later, and tried again until it is on disk."""

    def __init__(self, live: Live, at: int, room: float = math.inf) -> None:
        """`room`: for so many bytes of messages more than those that the work of the group was counted with."""
        self._live = live
        self._room = room
        self._changes = Changes(at=at)
        self._dequeues: dict[int, list[bytes]] = {}
        self.traced: list[bytes] = []
        """Trace contexts of its messages that get spans."""

    @property
    def changes(self) -> Changes:
        """The changes so far; callers add to them directly, except to the journal's own tables."""
        return self._changes

    def takes(self, size: int) -> bool:
        """Whether so many bytes of messages have room in the group besides; they have it then."""
        fits = size <= self._room
        self._room -= size * fits
        return fits

    def fault(self, frame: JournalFrame) -> str:
        """Why `frame` is invalid and can never be written, or "" when it can."""
        brought = {content.id for content in frame.contents}
        for batch in frame.entries:
            if batch.id >= LIMIT or batch.content >= LIMIT or not batch.count:
                return f"entry batch {batch.id} on content {batch.content} with {batch.count} entries is out of range"
            if batch.content not in brought and not self._holds(batch.content):
                return f"entry batch {batch.id} refers to content {batch.content}, which the store does not have whole"
        if frame.sequence >= LIMIT:
            return f"sequence {frame.sequence} is out of range"
        if any(floor.uid >= LIMIT or floor.origin >= LIMIT for floor in frame.floors):
            return "a floor is out of range"
        if any(max(taken.id, taken.origin, taken.upto) >= LIMIT for taken in frame.taken):
            return "what was taken is out of range"
        return ""

    def add(self, frame: JournalFrame, fenced: Collection[str] = ()) -> None:
        """Adds a frame without a fault, except for its changes to partitions whose leases are `fenced`."""
        partitions = _Writable(fenced)
        if frame.traced:
            self.traced.extend(frame.traced)
        if frame.entries:
            self._add_entries(frame, partitions)
        for dequeue in frame.dequeues:
            found = self._live.batches.get(dequeue.batch)
            if found and found.partition in partitions:
                self._dequeue(dequeue, found)
        for delivered in frame.delivered:
            found = self._live.batches.get(delivered.batch)
            if found and found.partition in partitions:
                self._deliver(delivered.batch, delivered.upto)
        self._add_marks(frame, partitions)

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

    def _add_entries(self, frame: JournalFrame, partitions: Container[int]) -> None:
        brought = {content.id: content for content in frame.contents}
        for batch in frame.entries:
            if batch.id in self._live.batches or batch.partition not in partitions:
                continue
            content = self._content(batch.content, brought.get(batch.content))
            self._live.add(batch.id, batch.partition, content, batch.count)
            self._changes.entries[batch.id] = _row(batch)

    def _content(self, number: int, brought: Content | None) -> LiveContent:
        """The content; adds it to the group unless it is whole on disk already."""
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

    def _dequeue(self, dequeue: Dequeue, found: LiveBatch) -> None:
        batch, content = dequeue.batch, found.content
        fresh = self._live.remove(batch, dequeue.indexes, self._changes.at)
        if found.left:
            if fresh:
                some = dequeue if len(fresh) == len(dequeue.indexes) else Dequeue(batch=batch, indexes=fresh)
                self._dequeues.setdefault(batch, []).append(some.SerializeToString())
            return
        self._dequeues.pop(batch, None)
        self._changes.delivered.pop(batch, None)
        # A batch that is added and emptied within one group never touches the disk.
        if self._changes.entries.pop(batch, None) is None:
            self._changes.dead_batches.append(batch)
        if content.references == 0:
            self._bury(content.id)

    def _bury(self, content: int) -> None:
        # Even if it was added in this group, an older form of it may be on disk.
        self._changes.contents.pop(content, None)
        self._changes.blanked.pop(content, None)
        self._changes.dead_contents.append(content)

    def _deliver(self, batch: int, upto: int) -> None:
        delivered = self._changes.delivered
        delivered[batch] = max(delivered.get(batch, 0), upto)

    def _add_marks(self, frame: JournalFrame, partitions: Container[int]) -> None:
        changes = self._changes
        for floor in frame.floors:
            if floor.partition in partitions:
                changes.floors[floor.partition, floor.origin] = floor.uid
        for taken in frame.taken:
            if taken.partition in partitions:
                if taken.whole:
                    changes.replace_taken(taken.partition, taken.origin)
                row = TakenRow(taken.id, taken.partition, taken.origin, taken.upto, taken.messages)
                changes.taken.append(row)


class _Writable:
    """All partitions except those whose leases are fenced; there hardly ever are any."""

    def __init__(self, fenced: Collection[str]) -> None:
        self._fenced = fenced

    def __contains__(self, partition: object) -> bool:
        return not self._fenced or (isinstance(partition, int) and lease_name(partition) not in self._fenced)


def _row(batch: EntryBatch) -> EntryRow:
    return EntryRow(batch.id, batch.partition, batch.content, batch.count, batch.entries)
