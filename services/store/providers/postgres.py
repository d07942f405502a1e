"""The store in a PostgreSQL database: the store is as highly available as the database.

Journal, leases and records are in one database, and a group is one transaction, in one round trip. One session writes,
one reads, a backup has its own. `postgres_writer.py` says what is promised while the database fails, or moves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path

import structlog

from services.common.clock import monotonic
from services.common.disk import Room
from services.common.errors import InternalError
from services.store.chunks import in_chunks
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
from services.store.providers import postgres_read as read
from services.store.providers import postgres_session as session
from services.store.providers.postgres_lookout import Lookout
from services.store.providers.postgres_read import Reader
from services.store.providers.postgres_schema import migrate
from services.store.providers.postgres_session import Connection
from services.store.providers.postgres_snapshot import snapshot
from services.store.providers.postgres_writer import Writer

_STARTING_SECONDS = 60.0  # to wait for a server that says that it starts
_POLL_SECONDS = 0.25

_FORGET = (
    "DELETE FROM journal_writer WHERE at < $1",
    "DELETE FROM refusal WHERE at < $1",
    "DELETE FROM floor WHERE at < $1",
)
_OF_NOBODY = """
    DELETE FROM taken AS t WHERE $1::bigint IS NOT NULL AND NOT EXISTS (
        SELECT FROM floor f WHERE f.partition = t.partition AND f.origin = t.origin
    )
"""

log = structlog.get_logger()


class PostgresProvider:
    """Keeps the data in the schema `hopline` of the database at `url`, and nothing in the folder."""

    def __init__(self, folder: Path, url: str = "") -> None:
        if not url:
            raise InternalError("the store provider postgres wants HOPLINE_STORE_URL=postgresql://user@host/database")
        self.folder = folder
        self._url = url
        self._writer = Writer(url)
        self._reader = Reader(url, lambda: self._writer.epoch)
        self._lookout = Lookout(url)

    async def open(self, *, patient: bool = True) -> None:
        """Waits for a server that starts, if `patient`. Raises at once if there is none, or an unusable one.

        Raises Occupied, within a second or so, where another process goes on writing.
        """
        await self._lookout.close()
        with session.usable(self._url):
            connection = await self._connect(patient=patient)
            try:
                self._check(connection)
                await migrate(connection)
                await self._warn(connection)
                await self._writer.open(connection)
            except BaseException:
                connection.terminate()
                raise

    async def _connect(self, *, patient: bool) -> Connection:
        deadline = monotonic() + _STARTING_SECONDS
        while True:
            try:
                return await session.connect(self._url, writes=True)
            except Exception as failure:
                if not (patient and session.starting(failure) and monotonic() < deadline):
                    raise
            await asyncio.sleep(_POLL_SECONDS)

    def _check(self, connection: Connection) -> None:
        version = connection.get_server_version()
        if version.major < session.OLDEST:
            text = f"PostgreSQL {version.major} is too old, {session.OLDEST} is the first that does"
            raise InternalError(f"cannot use {session.shown(self._url)}: {text}")

    async def _warn(self, connection: Connection) -> None:
        for setting in ("fsync", "full_page_writes"):
            if await connection.fetchval("SELECT current_setting($1)", setting) == "off":
                what = "the database may lose what it has confirmed when its machine fails"
                log.warning(what, setting=setting, do="turn it on in the database's configuration")

    async def close(self) -> None:
        await self._lookout.close()
        await self._reader.close()
        await self._writer.close()

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
        return None

    async def make_room(self) -> None:
        """Nothing to do: the database has its own vacuum."""

    async def tidy(self, outcomes_before: int, marks_before: int) -> None:
        await self._writer.run(
            ("DELETE FROM outcome WHERE at < $1", outcomes_before),
            *((sql, marks_before) for sql in (*_FORGET, _OF_NOBODY)),
        )

    async def live(self) -> list[LiveRow]:
        return await read.live(self._reader)

    async def floors(self, partition: int) -> list[tuple[int, int]]:
        return await read.floors(self._reader, partition)

    async def taken(self, partition: int) -> list[TakenRow]:
        return await read.taken(self._reader, partition)

    async def numbers(self, partitions: Sequence[int]) -> dict[int, list[int]]:
        return await read.numbers(self._reader, partitions)

    def batches(self, numbers: Sequence[int]) -> AsyncIterator[StoredBatch]:
        return in_chunks(numbers, partial(read.chunk, self._reader))

    async def sharing(self, content: int) -> Sharing | None:
        return await read.sharing(self._reader, content)

    async def outcomes(self) -> list[OutcomeRow]:
        return await read.outcomes(self._reader)

    async def writers(self) -> dict[int, int]:
        return dict(await self._reader.rows("SELECT origin, sequence FROM journal_writer"))

    async def refusals(self) -> list[RefusalRow]:
        return await read.refusals(self._reader)

    async def leases(self) -> list[LeaseRow]:
        return await read.leases(self._reader)

    async def last_origin(self) -> int:
        return await read.counter(self._reader, "origin")

    async def running(self) -> int:
        return await read.counter(self._reader, "running")

    async def begin_incarnation(self) -> int:
        return await self._writer.count("incarnation")

    async def records(self) -> list[RecordRow]:
        return await read.records(self._reader)

    async def snapshot(self) -> AsyncGenerator[Changes, None]:
        """As Provider says. Until it ends, its transaction keeps the database from vacuuming dead rows."""
        with session.usable(self._url):
            async with aclosing(snapshot(self._url, self._writer.epoch)) as pieces:
                async for changes in pieces:
                    yield changes

    async def given(self) -> Changes:
        return Changes()

    def files(self) -> tuple[str, ...]:
        return ()
