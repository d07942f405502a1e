"""Reads of the PostgreSQL provider. While the database is away they are tried again, which does no harm."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import structlog

from services.store.provider import (
    EntryRow,
    LeaseRow,
    LiveRow,
    OutcomeRow,
    RecordRow,
    RefusalRow,
    Sharing,
    StoredBatch,
    TakenRow,
)
from services.store.providers import postgres_session as session
from services.store.providers.postgres_session import Connection, within
from services.store.providers.postgres_write import unsigned

T = TypeVar("T")
Rows = list[Any]  # of asyncpg's records, which are tuples

_ANSWER_SECONDS = 60.0
_RETRY_SECONDS = 0.25

# A chunk of recovery ends at the limit that is reached first.
CHUNK_ROWS = 512
CHUNK_BYTES = 8 << 20

# octet_length() of an uncompressed value reads only the row's header.
_LIVE = """
    SELECT b.id, b.partition, b.content, b.count, octet_length(c.columns), c.whole
    FROM entry_batch b JOIN content c ON c.id = b.content
"""
_NUMBERS = "SELECT partition, array_agg(id ORDER BY id) FROM entry_batch WHERE partition = ANY($1) GROUP BY partition"
# What several batches in a row are on is sent with the first.
_CHUNK = """
    WITH wanted AS (
        SELECT b.id, octet_length(c.columns) AS size,
            lag(b.content) OVER (ORDER BY b.id) IS DISTINCT FROM b.content AS first
        FROM entry_batch b JOIN content c ON c.id = b.content WHERE b.id = ANY($1)
    ), fitting AS (
        SELECT id, first, sum(size) FILTER (WHERE first) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - size AS before
        FROM wanted
    )
    SELECT b.id, b.partition, b.content, b.count, b.entries, CASE WHEN f.first THEN c.columns END, b.delivered_upto,
        ARRAY(SELECT d.indexes FROM dequeue d WHERE d.batch = b.id)
    FROM fitting f JOIN entry_batch b ON b.id = f.id JOIN content c ON c.id = b.content
    WHERE f.before < $2 ORDER BY b.id
"""
_SHARING = """
    SELECT b.entries, ARRAY(SELECT d.indexes FROM dequeue d WHERE d.batch = b.id)
    FROM entry_batch b WHERE b.content = $1
"""

log = structlog.get_logger()


async def connect(url: str, epoch: int) -> Connection:
    """A session with the database to which the writer of `epoch` writes."""
    connection = await session.connect(url)
    try:
        found: int = await within(_ANSWER_SECONDS, connection, connection.fetchval("SELECT epoch FROM store"))
    except BaseException:
        connection.terminate()
        raise
    if found < epoch:
        connection.terminate()
        raise ConnectionError("it is a primary no more: it knows nothing of its writer")
    return connection


class Reader:
    """A session for reads, one after the other; each sees all that was committed before."""

    def __init__(self, url: str, epoch: Callable[[], int]) -> None:
        """`epoch` gives the writer's epoch: a database that does not know it is a former primary, and so may be that of
        a session made in an older epoch; a standby may have taken over since.
        """
        self._url = url
        self._epoch = epoch
        self._of = 0  # the epoch that the session was made in
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()

    async def rows(self, sql: str, *arguments: object) -> Rows:
        """All rows of a query."""
        return await self.run(lambda connection: connection.fetch(sql, *arguments))

    async def run(self, read: Callable[[Connection], Awaitable[T]]) -> T:
        """The result of `read`, which is called again whenever the database goes away before it is done."""
        told = False
        while True:
            try:
                async with self._turn:
                    return await self._try(read)
            except Exception as failure:
                if not session.lost(failure):
                    raise
                if not told:
                    log.warning("cannot read, will try until it works", reason=session.reason(failure), do=session.MEND)
                told = True
            await asyncio.sleep(_RETRY_SECONDS)

    async def _try(self, read: Callable[[Connection], Awaitable[T]]) -> T:
        if self._connection is not None and self._of != self._epoch():
            self._connection.terminate()
        if self._connection is None or self._connection.is_closed():
            epoch = self._epoch()
            self._connection = await connect(self._url, epoch)
            self._of = epoch
        return await within(_ANSWER_SECONDS, self._connection, read(self._connection))

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        await session.close(connection)


async def live(reader: Reader) -> list[LiveRow]:
    """All entry batches with their dequeues. Nothing is written meanwhile: the store is about to start."""
    dequeues: dict[int, list[bytes]] = {}
    for batch, indexes in await reader.rows("SELECT batch, indexes FROM dequeue"):
        dequeues.setdefault(batch, []).append(indexes)
    return [
        LiveRow(number, partition, content, count, b"".join(dequeues.pop(number, ())), size, whole)
        for number, partition, content, count, size, whole in await reader.rows(_LIVE)
    ]


async def numbers(reader: Reader, partitions: Sequence[int]) -> dict[int, list[int]]:
    """As Provider says."""
    return {partition: [] for partition in partitions} | dict(await reader.rows(_NUMBERS, partitions))


async def chunk(reader: Reader, some: Sequence[int]) -> list[StoredBatch]:
    """Of the batches with these ids those that are there, as many as go into a chunk."""
    found: list[StoredBatch] = []
    for number, of, content, count, entries, columns, upto, dequeues in await reader.rows(_CHUNK, some, CHUNK_BYTES):
        if columns is None:
            columns = found[-1].columns  # noqa: PLW2901 - those of the batch before it
        found.append(StoredBatch(EntryRow(number, of, content, count, entries), columns, list(dequeues), upto))
    return found


async def sharing(reader: Reader, content: int) -> Sharing | None:
    """A content and all batches on it."""

    async def read(connection: Connection) -> Sharing | None:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            columns = await connection.fetchval("SELECT columns FROM content WHERE id = $1", content)
            batches = await connection.fetch(_SHARING, content)
        return None if columns is None else Sharing(columns, [(entries, list(gone)) for entries, gone in batches])

    return await reader.run(read)


async def floors(reader: Reader, partition: int) -> list[tuple[int, int]]:
    """As Provider says."""
    rows = await reader.rows("SELECT origin, uid FROM floor WHERE partition = $1 ORDER BY at, origin", partition)
    return [(origin, uid) for origin, uid in rows]


async def taken(reader: Reader, partition: int) -> list[TakenRow]:
    """As Provider says."""
    sql = "SELECT id, partition, origin, upto, messages FROM taken WHERE partition = $1"
    return [TakenRow(*row) for row in await reader.rows(sql, partition)]


async def outcomes(reader: Reader) -> list[OutcomeRow]:
    """As Provider says."""
    rows = await reader.rows("SELECT id, committed, at FROM outcome ORDER BY at")
    return [OutcomeRow(unsigned(number), committed, at) for number, committed, at in rows]


async def refusals(reader: Reader) -> list[RefusalRow]:
    """As Provider says."""
    return [RefusalRow(*row) for row in await reader.rows("SELECT origin, sequence, answer FROM refusal")]


async def leases(reader: Reader) -> list[LeaseRow]:
    """As Provider says."""
    return [lease(row) for row in await reader.rows("SELECT name, epoch, member, role, address FROM lease")]


async def records(reader: Reader) -> list[RecordRow]:
    """As Provider says."""
    return [record(row) for row in await reader.rows("SELECT kind, key, value, version FROM record")]


async def counter(reader: Reader, name: str) -> int:
    """The value of a counter; all counters are there from the beginning."""
    ((value,),) = await reader.rows("SELECT value FROM counter WHERE name = $1", name)
    return int(value)


def lease(row: Any) -> LeaseRow:  # noqa: ANN401 - a record of asyncpg
    """A row of the table `lease`."""
    name, epoch, member, role, address = row
    return LeaseRow(name.decode(), epoch, member.decode(), role.decode(), address.decode())


def record(row: Any) -> RecordRow:  # noqa: ANN401 - a record of asyncpg
    """A row of the table `record`."""
    kind, key, value, version = row
    return RecordRow(kind.decode(), key.decode(), value, version)
