"""Content of which little is alive gives back its space: bodies of dead entries are blanked, positions stay.

This is the one place where the store looks into columns. It reads outside of the commit loop and decides within it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from services.rpc.queue_pb2 import PublishBatch
from services.rpc.store_pb2 import Dequeue, EntryColumns
from services.store.draft import Draft
from services.store.live import SPARSE, Live, LiveContent
from services.store.provider import Provider, Sharing

# A content that is being emptied has mostly gone by itself before it has been sparse for so long; and by then no
# publisher resends parts of it.
_AGE_MS = 60_000
_AT_ONCE = 8


def living(batches: Iterable[tuple[bytes, list[bytes]]]) -> set[int]:
    """The positions in a content to which living entries of `batches` (entries, dequeues) refer."""
    positions: set[int] = set()
    for entries, dequeues in batches:
        columns = EntryColumns.FromString(entries)
        runs = zip(columns.first, columns.count, strict=True)
        dead = set(Dequeue.FromString(b"".join(dequeues)).indexes)
        messages = chain.from_iterable(range(first, first + count) for first, count in runs)
        positions.update(message for index, message in enumerate(messages) if index not in dead)
    return positions


def blank(sharing: Sharing) -> bytes:
    """The columns without the bodies of dead entries."""
    batch = PublishBatch.FromString(sharing.columns)
    alive = living(sharing.batches)
    bodies = [body if position in alive else b"" for position, body in enumerate(batch.bodies)]
    del batch.bodies[:]
    batch.bodies.extend(bodies)
    return batch.SerializeToString()


class Compaction:
    """One content, read and rewritten. `prepare` drops it when the content gained a user meanwhile, or died."""

    def __init__(self, live: Live, content: LiveContent) -> None:
        self._live = live
        self._content = content
        self._total = content.total
        self._columns = b""

    async def read(self, provider: Provider) -> bool:
        """Reads and blanks; False when there is nothing to gain."""
        sharing = await provider.sharing(self._content.id)
        if sharing is None:
            return False
        self._columns = blank(sharing)
        return len(self._columns) < len(sharing.columns)

    def prepare(self, draft: Draft) -> None:
        content = self._content
        if self._live.contents.get(content.id) is not content or content.total != self._total:
            return
        content.whole = False
        content.size = len(self._columns)
        content.total = content.left  # not sparse again before it has shrunk as much once more
        draft.changes.blanked[content.id] = self._columns

    def written(self) -> None:
        """Does nothing: no one waits for it."""


def _fitting(live: Live, now: int, room: int | None) -> list[int]:
    """The contents that are due, oldest first, as far as there is room: their rewritten form goes through the log."""
    found: list[int] = []
    for number, since in live.sparse.items():
        if since > now - _AGE_MS or len(found) == _AT_ONCE:
            break
        size = content.size if (content := live.contents.get(number)) else 0
        if room is None or size <= room:
            found.append(number)
            room = None if room is None else room - size
    return found


async def compact(provider: Provider, live: Live, now: int, room: int | None = None) -> list[Compaction]:
    """Work for contents that have been sparse for long, a few at once, which take no more than `room` in bytes.

    `now` as the commits' stamps. A content too large for the room waits, and smaller ones make room.
    """
    found = []
    for number in _fitting(live, now, room):
        content = live.contents.get(number)
        live.sparse.pop(number, None)
        if content is None or content.left * SPARSE >= content.total:
            continue
        # Counts first, then the read: entries that come in between change the counts, and the work is dropped.
        work = Compaction(live, content)
        if await work.read(provider):
            found.append(work)
    return found
