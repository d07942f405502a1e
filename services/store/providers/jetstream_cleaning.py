"""Makes room in the stream: deletes segments of the log that a snapshot covers and that have no living content.

The living contents of a segment that is mostly dead are written again at the end of the log.
"""

from __future__ import annotations

from services.store.provider import Changes
from services.store.providers.jetstream_bodies import Bodies
from services.store.providers.jetstream_encoding import ContentPosition
from services.store.providers.jetstream_index import Index
from services.store.providers.jetstream_load import log_subject
from services.store.providers.jetstream_space import Segment
from services.store.providers.jetstream_writer import Writer

_MOVED_BYTES = 512 << 10  # in one group: others wait for it


class Cleaning:
    """Cleans the stream of one writer."""

    def __init__(self, writer: Writer, bodies: Bodies) -> None:
        self._writer = writer
        self._bodies = bodies

    async def step(self) -> None:
        """Deletes what can be deleted. Raises Away."""
        space, mark = self._writer.index.space, self._writer.loaded.mark
        for segment in space.before(mark.segment):
            if segment.live and segment.sparse and self._writer.left.spares(segment.live):
                await self._empty(segment)
            if not segment.live and not space.pins:
                await self._drop(segment)

    async def _drop(self, segment: Segment) -> None:
        # Safe even from a former writer that comes late: a segment that was dead stays dead.
        async with self._writer.turn() as link:
            await link.purge(f"{link.prefix}.{log_subject(segment.number)}")
        self._writer.index.space.segments.remove(segment)

    async def _empty(self, segment: Segment) -> None:
        index = self._writer.index
        moved, size = dict[int, tuple[ContentPosition, bytes]](), 0
        for content in await index.between(segment.first, index.space.until(segment)):
            place = index.place(content)
            columns = await self._bodies.at(place) if place else None
            if place and columns is not None:
                moved[content] = place, columns
                size += len(columns)
            if size > _MOVED_BYTES:
                await self._move(moved)
                moved, size = {}, 0
        await self._move(moved)

    async def _move(self, moved: dict[int, tuple[ContentPosition, bytes]]) -> None:
        await self._writer.move(lambda: _still_there(self._writer.index, moved))


def _still_there(index: Index, moved: dict[int, tuple[ContentPosition, bytes]]) -> Changes:
    """The contents that were neither removed nor written again meanwhile."""
    changes = Changes()
    for content, (place, columns) in moved.items():
        if index.place(content) == place:
            (changes.contents if index.whole(content) else changes.blanked)[content] = columns
    return changes
