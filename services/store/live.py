"""What is alive in the journal, entry by entry: when the last one of a batch goes, the batch goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.rpc.store_pb2 import Dequeue
from services.store.provider import LiveRow

# A smaller content is not worth rewriting; a larger one is when less than one entry in `SPARSE` is alive.
LARGE = 64 * 1024
SPARSE = 4


@dataclass(slots=True)
class LiveContent:
    """A content and how much of it is in use. `whole` until bodies of dead entries were blanked."""

    id: int
    size: int
    references: int = 0
    total: int = 0
    left: int = 0
    whole: bool = True


class LiveBatch:
    """Which of `total` entries are left; nothing is noted before the first goes."""

    __slots__ = ("_gone", "content", "left", "partition", "total")

    def __init__(self, partition: int, content: LiveContent, total: int) -> None:
        self.partition = partition
        self.content = content
        self.total = self.left = total
        self._gone: bytearray | None = None

    def remove(self, indexes: Sequence[int]) -> Sequence[int]:
        """Gives the entries that were there until now: a client without an answer may dequeue an entry again."""
        if self._gone is None:
            if self.left == len(indexes) == len(distinct := set(indexes)) and max(distinct) < self.total:
                self.left = 0  # all at once, as most are
                return indexes
            self._gone = bytearray(self.total)
        gone, total, fresh = self._gone, self.total, []
        for index in indexes:
            if index < total and not gone[index]:
                gone[index] = 1
                fresh.append(index)
        self.left -= len(fresh)
        return fresh


class Live:
    """All entry batches. Knows nothing of the disk, and of time only the stamps that it is given."""

    def __init__(self) -> None:
        self.batches: dict[int, LiveBatch] = {}
        self.contents: dict[int, LiveContent] = {}
        self.sparse: dict[int, int] = {}  # content -> since when, oldest first

    def restore(self, rows: Iterable[LiveRow]) -> None:
        """Takes over the entry batches that a provider holds."""
        for row in rows:
            content = self.contents.get(row.content)
            if content is None:
                content = self.contents[row.content] = LiveContent(row.content, row.size, whole=row.whole)
            self.add(row.id, row.partition, content, row.total)
            if row.dequeues:
                self.remove(row.id, Dequeue.FromString(row.dequeues).indexes, at=0)

    def add(self, batch: int, partition: int, content: LiveContent, count: int) -> None:
        """Adds an entry batch of `count` living entries."""
        self.batches[batch] = LiveBatch(partition, content, count)
        content.references += 1
        content.total += count
        content.left += count

    def remove(self, batch: int, indexes: Sequence[int], at: int) -> Sequence[int]:
        """Removes entries of a batch, and the batch with its last one; gives those that were there until now."""
        found = self.batches[batch]
        fresh = found.remove(indexes)
        content = found.content
        content.left -= len(fresh)
        if found.left == 0:
            self._bury(batch, content)
        elif content.size >= LARGE and content.left * SPARSE < content.total:
            self.sparse.setdefault(content.id, at)
        return fresh

    def _bury(self, batch: int, content: LiveContent) -> None:
        del self.batches[batch]
        content.references -= 1
        if content.references == 0:
            del self.contents[content.id]
            self.sparse.pop(content.id, None)
