"""The columns of contents, read back from where they are in the stream."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress

from services.common.errors import InternalError
from services.common.runtime import end, shielded
from services.store.provider import StoredBatch
from services.store.providers.jetstream_encoding import ContentPosition, Part
from services.store.providers.jetstream_link import Lost
from services.store.providers.jetstream_writer import Writer

Span = tuple[int, int, int]  # sequence of a message, from, to

_KEPT_BYTES = 32 << 20  # cache of messages: contents of one group are mostly read one after the other
_AT_ONCE = 32  # so that over a slow network each has its answer before it is given up, whoever asks for how many
_READ_MESSAGES = 32  # of at most 128 KiB
_READ_ROWS = 512
_POLL_SECONDS = 0.2


class Bodies:
    """Reads over the writer's connection, and waits while there is none."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._kept: OrderedDict[int, bytes] = OrderedDict()  # sequence -> body, the last used last
        self._size = 0
        self._turns = asyncio.Semaphore(_AT_ONCE)
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
        spans = list(place.spans())
        bodies = {sequence: await self._body(sequence) for sequence, _, _ in spans}
        return _joined(spans, bodies)

    async def batches(self, numbers: Sequence[int]) -> AsyncIterator[StoredBatch]:
        """As Provider says; reads some messages at a time, together, and each once for all that it has for them."""
        start = 0
        while start < len(numbers):
            chunk = self._cut(numbers[start : start + _READ_ROWS])
            start += len(chunk)
            for number, columns in await self._columns(chunk):
                # Looked up now: entries may have been dequeued while the content was read.
                found = self._writer.index.batch(number)
                if found and columns is not None:
                    yield StoredBatch(found[0], columns, *found[1:])

    def _cut(self, numbers: Sequence[int]) -> Sequence[int]:
        """The first of these batches, as many as are in the messages that may be in memory, at least one."""
        messages: set[int] = set()
        for count, number in enumerate(numbers):
            if place := self._place(number):
                messages.update(sequence for sequence, _, _ in place.spans())
            if count and len(messages) > _READ_MESSAGES:
                return numbers[:count]
        return numbers

    async def _columns(self, numbers: Sequence[int]) -> list[tuple[int, bytes | None]]:
        """The columns of each batch; None where it is gone. No task for each: a million take a minute."""
        places = [(number, place) for number in numbers if (place := self._place(number))]
        spans = {place: list(place.spans()) for _, place in places}
        wanted = dict.fromkeys(sequence for parts in spans.values() for sequence, _, _ in parts)
        bodies = dict(zip(wanted, await asyncio.gather(*map(self._body, wanted)), strict=True))
        found = {place: _joined(parts, bodies) for place, parts in spans.items()}
        return [
            (number, await self._moved(number) if (columns := found[place]) is None else columns)
            for number, place in places
        ]

    def _place(self, number: int) -> ContentPosition | None:
        """Where the content of a batch is; None where it is gone."""
        found = self._writer.index.batch(number)
        return found and self._writer.index.place(found[0].content)

    async def _moved(self, number: int) -> bytes | None:
        """The columns of a batch whose content is not any more where it was."""
        found = self._writer.index.batch(number)
        return await self.of(found[0].content) if found else None

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
                with suppress(Lost):
                    async with self._turns:
                        return await link.message(sequence)
            if self._writer.ended:
                raise self._writer.ended
            await asyncio.sleep(_POLL_SECONDS)


def _joined(spans: Iterable[Span], bodies: Mapping[int, bytes | None]) -> bytes | None:
    """What these parts of messages are together; None where one of the messages is gone."""
    found = []
    for sequence, start, until in spans:
        if (body := bodies[sequence]) is None:
            return None
        found.append(body[start:until])
    return found[0] if len(found) == 1 else b"".join(found)
