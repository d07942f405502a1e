"""The columns of contents, read back from where they are in the stream."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence

from services.common.errors import InternalError
from services.common.runtime import end, shielded
from services.store.provider import StoredBatch
from services.store.providers.jetstream_encoding import ContentPosition, Part
from services.store.providers.jetstream_link import Lost
from services.store.providers.jetstream_writer import Writer

_KEPT_BYTES = 32 << 20  # cache of messages: contents of one group are mostly read one after the other
_READ_BYTES = 4 << 20
_READ_ROWS = 64
_POLL_SECONDS = 0.2


class Bodies:
    """Reads over the writer's connection, and waits while there is none."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._kept: OrderedDict[int, bytes] = OrderedDict()  # sequence -> body, the last used last
        self._size = 0
        self._under_way: dict[int, asyncio.Task[bytes | None]] = {}

    async def close(self) -> None:
        """Ends reads that are under way."""
        await end(self._under_way.values())

    async def of(self, content: int) -> bytes | None:
        """The columns of a content; None where it is gone. Raises InternalError where they are lost."""
        index = self._writer.index
        while place := index.place(content):
            if (columns := await self.at(place)) is not None:
                return columns
            if index.place(content) == place:
                raise InternalError(f"the stream has lost the content {content}, at {place.sequence}")
        return None

    async def at(self, place: ContentPosition) -> bytes | None:
        """The columns at a place; None where they are gone."""
        found = []
        for sequence, start, until in place.spans():
            body = await self._body(sequence)
            if body is None:
                return None
            found.append(body[start:until])
        return b"".join(found)

    async def batches(self, partition: int) -> AsyncIterator[StoredBatch]:
        """As Provider says; reads some at a time, together."""
        index = self._writer.index
        numbers: Sequence[int] = index.of(partition)
        while numbers:
            chunk, numbers = self._cut(numbers)
            for batch in await asyncio.gather(*map(self._batch, chunk)):
                if batch:
                    yield batch

    def _cut(self, numbers: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """As many batches as may be in memory, at least one; and the rest."""
        size, index = 0, self._writer.index
        for count, number in enumerate(numbers[:_READ_ROWS], 1):
            found = index.batch(number)
            place = found and index.place(found[0].content)
            size += place.size if place else 0
            if size > _READ_BYTES:
                return numbers[:count], numbers[count:]
        return numbers[:_READ_ROWS], numbers[_READ_ROWS:]

    async def _batch(self, number: int) -> StoredBatch | None:
        found = self._writer.index.batch(number)
        columns = await self.of(found[0].content) if found else None
        # Looked up again: entries may have been dequeued while the content was read.
        found = self._writer.index.batch(number)
        return None if found is None or columns is None else StoredBatch(found[0], columns, *found[1:])

    async def _body(self, sequence: int) -> bytes | None:
        if (body := self._kept.get(sequence)) is not None:
            self._kept.move_to_end(sequence)
            return body
        return await self._once(sequence)

    async def _once(self, sequence: int) -> bytes | None:
        """Reads a message once for all that ask for it at the same time."""
        task = self._under_way.get(sequence)
        if task is None:
            task = self._under_way[sequence] = asyncio.ensure_future(self._read(sequence))
            task.add_done_callback(lambda _: self._under_way.pop(sequence, None))
        return await shielded(task)

    async def _read(self, sequence: int) -> bytes | None:
        message = await self._asked(sequence)
        if message is None:
            return None
        body = Part.decode(message).body
        self._keep(sequence, body)
        return body

    def _keep(self, sequence: int, body: bytes) -> None:
        if sequence not in self._kept:
            self._kept[sequence] = body
            self._size += len(body)
        while self._size > _KEPT_BYTES:
            self._size -= len(self._kept.popitem(last=False)[1])

    async def _asked(self, sequence: int) -> bytes | None:
        while True:
            if link := self._writer.link:
                try:
                    return await link.message(sequence)
                except Lost:
                    pass
            if self._writer.ended:
                raise self._writer.ended
            await asyncio.sleep(_POLL_SECONDS)
