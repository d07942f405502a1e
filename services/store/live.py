"""What is alive in the journal, counted per batch: when the last entry of a batch goes, the batch goes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from services.store.provider import LiveRow

# Below this, a content is not worth rewriting; and it is when less than one entry in `SPARSE` is alive.
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


@dataclass(slots=True)
class LiveBatch:
    content: LiveContent
    left: int


class Live:
    """Counts of all entry batches. Knows nothing of disk or time beyond the stamps it is given."""

    def __init__(self) -> None:
        self.batches: dict[int, LiveBatch] = {}
        self.contents: dict[int, LiveContent] = {}
        self.sparse: dict[int, int] = {}  # content -> since when, oldest first

    def restore(self, rows: Iterable[LiveRow]) -> None:
        """Takes over what a provider holds."""
        for row in rows:
            content = self.contents.get(row.content)
            if content is None:
                content = self.contents[row.content] = LiveContent(row.content, row.size, whole=row.whole)
            self.add(row.id, content, row.total)
            if row.left < row.total:
                self.remove(row.id, row.total - row.left, at=0)

    def add(self, batch: int, content: LiveContent, count: int) -> None:
        """An entry batch of `count` living entries."""
        self.batches[batch] = LiveBatch(content, count)
        content.references += 1
        content.total += count
        content.left += count

    def remove(self, batch: int, count: int, at: int) -> LiveBatch | None:
        """Entries of a batch are gone; gives the batch when that was its last. Unknown batches are gone already."""
        found = self.batches.get(batch)
        if found is None:
            return None
        gone = min(count, found.left)
        found.left -= gone
        content = found.content
        content.left -= gone
        if found.left == 0:
            self._bury(batch, content)
            return found
        if content.size >= LARGE and content.left * SPARSE < content.total:
            self.sparse.setdefault(content.id, at)
        return None

    def _bury(self, batch: int, content: LiveContent) -> None:
        del self.batches[batch]
        content.references -= 1
        if content.references == 0:
            del self.contents[content.id]
            self.sparse.pop(content.id, None)
