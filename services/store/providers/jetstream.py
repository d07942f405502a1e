"""The store in a stream of NATS JetStream, which keeps replicas of it on as many servers as configured.

Everything is also in memory, except the columns of contents: of these only their place in the stream is. A group is one
message of the stream, or several that count together. `jetstream_writer.py` says what is promised while servers fail; a
start reads a snapshot and the log behind it, and the log is kept as short as the living contents allow.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from pathlib import Path

import structlog

from services.common.disk import Room
from services.common.errors import InternalError
from services.common.remedies import TRIED_AGAIN
from services.common.runtime import Tasks
from services.store.provider import (
    Changes,
    LeaseRow,
    LiveRow,
    OutcomeRow,
    RecordRow,
    RefusalRow,
    Sharing,
    StoredBatch,
    TakenRow,
)
from services.store.providers.jetstream_bodies import Bodies
from services.store.providers.jetstream_cleaning import Cleaning
from services.store.providers.jetstream_copy import copy
from services.store.providers.jetstream_index import Index
from services.store.providers.jetstream_lookout import Lookout
from services.store.providers.jetstream_snapshot import Snapshots
from services.store.providers.jetstream_url import parse
from services.store.providers.jetstream_writer import Writer
from services.store.providers.standing import Away

_LOOK_SECONDS = 1.0

log = structlog.get_logger()


class JetStreamProvider:
    """Keeps the data in the stream that `url` names, and nothing in the folder."""

    def __init__(self, folder: Path, url: str = "") -> None:
        if not url:
            raise InternalError("the store provider jetstream wants HOPLINE_STORE_URL=nats://host/stream")
        self.folder = folder
        self._writer = Writer(parse(url))
        self._lookout = Lookout(parse(url))
        self._bodies = Bodies(self._writer)
        self._snapshots = Snapshots(self._writer)
        self._cleaning = Cleaning(self._writer, self._bodies)
        self._tasks = Tasks()

    @property
    def _index(self) -> Index:
        return self._writer.index

    async def open(self, *, patient: bool = True) -> None:
        """Waits for servers that start, if `patient`. Raises at once if the stream is missing or wrongly configured.

        Raises Occupied, within a second or so, where another process goes on writing.
        """
        await self._lookout.tried()
        await self._writer.open(patient=patient)
        self._tasks.start(self._tend(), "snapshots")

    async def close(self) -> None:
        await self._tasks.stop()
        await self._lookout.close()
        await self._bodies.close()
        await self._writer.close()

    async def _tend(self) -> None:
        """Keeps the log short. After a failure it tries again."""
        while not self._writer.ended:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await self._shorten()
            except Away:
                pass  # the writer has logged it
            except Exception as failure:  # noqa: BLE001 - whatever it is, commits go on, and the log must not grow for ever
                what = "what is dead stays in the stream, until this works again"
                log.warning(what, reason=repr(failure), do=TRIED_AGAIN)

    async def _shorten(self) -> None:
        if self._snapshots.due:
            await self._snapshots.take()
        await self._cleaning.step()

    def watch(self, ended: Callable[[BaseException], None]) -> None:
        """As Elsewhere says."""
        self._writer.watch(ended)

    async def occupied(self) -> str:
        """As Elsewhere says."""
        return await self._lookout.writer()

    async def sure(self) -> None:
        """As Elsewhere says."""
        await self._writer.sure()

    def trouble(self) -> str:
        """As Elsewhere says."""
        return self._writer.trouble

    async def commit(self, changes: Changes) -> None:
        await self._writer.commit(changes)

    def room(self) -> Room | None:
        """The room that is left, where the stream has a limit."""
        return self._writer.left.for_messages

    async def make_room(self) -> None:
        """Nothing to do: `_tend` makes room."""

    async def tidy(self, outcomes_before: int, marks_before: int) -> None:
        await self._index.tidy(outcomes_before, marks_before)

    async def live(self) -> list[LiveRow]:
        return await self._index.live()

    async def floors(self, partition: int) -> list[tuple[int, int]]:
        return await self._index.floors(partition)

    async def taken(self, partition: int) -> list[TakenRow]:
        return await self._index.taken(partition)

    async def numbers(self, partitions: Sequence[int]) -> dict[int, list[int]]:
        return await self._index.numbers(partitions)

    def batches(self, numbers: Sequence[int]) -> AsyncIterator[StoredBatch]:
        return self._bodies.batches(numbers)

    async def sharing(self, content: int) -> Sharing | None:
        columns = await self._bodies.of(content)
        return None if columns is None else Sharing(columns, await self._index.on(content))

    async def outcomes(self) -> list[OutcomeRow]:
        return await self._index.outcomes()

    async def writers(self) -> dict[int, int]:
        return await self._index.writers()

    async def refusals(self) -> list[RefusalRow]:
        return await self._index.refusals()

    async def leases(self) -> list[LeaseRow]:
        return await self._index.leases()

    async def last_origin(self) -> int:
        return await self._index.last_origin()

    async def running(self) -> int:
        return await self._index.running()

    async def begin_incarnation(self) -> int:
        _, _, incarnation = self._index.counters()
        await self._writer.commit(Changes(incarnation=incarnation + 1))
        return incarnation + 1

    async def records(self) -> list[RecordRow]:
        return await self._index.records()

    def snapshot(self) -> AsyncGenerator[Changes, None]:
        return copy(self._index, self._bodies)

    async def given(self) -> Changes:
        return Changes()

    def files(self) -> tuple[str, ...]:
        return ()
