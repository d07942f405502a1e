"""A snapshot of the database at one moment, read in one transaction beside the commits."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from services.store.provider import Changes
from services.store.providers import postgres_read
from services.store.providers.postgres_read import CHUNK_BYTES, CHUNK_ROWS
from services.store.providers.postgres_session import Connection
from services.store.providers.postgres_write import unsigned
from services.store.snapshot import Pieces, Row, counted

_ROWS = 100  # in memory at once; of contents, which may be large, `CHUNK_BYTES`

# In one transaction all pages are of one moment.
_CONTENTS = """
    SELECT c.id, c.columns, c.whole FROM (
        SELECT id, sum(size) OVER (ORDER BY id) - size AS before FROM (
            SELECT id, octet_length(columns) AS size FROM content WHERE id > $1 ORDER BY id LIMIT $2
        ) AS next
    ) AS fitting JOIN content c ON c.id = fitting.id WHERE fitting.before < $3 ORDER BY c.id
"""
# In an order, so that a second reading gives the same pieces while nothing is written. The taken rows come before the
# floors, which remove some of them.
_TABLES = {
    "entries": "SELECT id, partition, content, count, entries FROM entry_batch ORDER BY id",
    "dequeues": "SELECT batch, remaining, indexes FROM dequeue ORDER BY batch, remaining",
    "delivered": "SELECT id, delivered_upto FROM entry_batch WHERE delivered_upto > 0 ORDER BY id",
    "taken": """
        SELECT id, partition, origin, upto, messages FROM taken ORDER BY partition, origin, upto, id
    """,
    "floors": "SELECT partition, origin, uid FROM floor ORDER BY partition, origin",
    "writers": "SELECT origin, sequence FROM journal_writer ORDER BY origin",
    "refusals": "SELECT origin, sequence, answer FROM refusal ORDER BY origin, sequence",
    "leases": "SELECT name, epoch, member, role, address FROM lease ORDER BY name",
    "records": "SELECT kind, key, value, version FROM record ORDER BY id",
    "outcomes": "SELECT id, committed FROM outcome ORDER BY at, id",
}
_DECODED = {
    "leases": postgres_read.lease,
    "records": postgres_read.record,
    "outcomes": lambda row: (unsigned(row[0]), row[1]),
}


async def snapshot(url: str, epoch: int) -> AsyncGenerator[Changes, None]:
    """The pieces of a snapshot, read with a connection of its own from the database to which the writer of `epoch`
    writes. The moment is when the first piece, an empty one, is asked for.
    """
    connection = await postgres_read.connect(url, epoch)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            counters = dict(await connection.fetch("SELECT name, value FROM counter"))
            yield Changes()
            pieces = Pieces(counters["running"])
            async with aclosing(_rows(connection)) as rows:
                async for name, row in rows:
                    if full := pieces.put(name, row):
                        yield full
            if rest := pieces.rest():
                yield rest
            yield counted(counters["running"], counters["origin"], counters["incarnation"])
    finally:
        connection.terminate()


async def _rows(connection: Connection) -> AsyncGenerator[tuple[str, Row], None]:
    async for row in _contents(connection):
        yield "contents", row
    for name, sql in _TABLES.items():
        decode: Any = _DECODED.get(name, tuple)
        async for row in connection.cursor(sql, prefetch=_ROWS):
            yield name, decode(row)


async def _contents(connection: Connection) -> AsyncIterator[Row]:
    after = -1
    while page := await connection.fetch(_CONTENTS, after, CHUNK_ROWS, CHUNK_BYTES):
        for row in page:
            yield tuple(row)
        after = page[-1][0]
