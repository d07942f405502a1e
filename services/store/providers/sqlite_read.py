"""Reads of the SQLite provider; each is one short read, so that none holds the log back from being checkpointed."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable

from services.store.provider import EntryRow, LiveRow, Sharing, StoredBatch

# A chunk of recovery ends at the limit that is reached first.
_CHUNK_BATCHES = 512
_CHUNK_BYTES = 1 << 20  # many partitions may be read back at once

# length() of a blob reads only the row's header.
_LIVE = """
    SELECT b.id, b.partition, b.content, b.count, length(c.columns), c.whole
    FROM entry_batch b JOIN content c ON c.id = b.content
"""
_CHUNK = """
    SELECT b.id, b.partition, b.content, b.count, b.entries, c.columns, b.delivered_upto
    FROM entry_batch b JOIN content c ON c.id = b.content
    WHERE b.partition = ? AND b.id > ? ORDER BY b.id LIMIT ?
"""
_CHUNK_DEQUEUES = """
    SELECT d.batch, d.indexes FROM entry_batch b JOIN dequeue d ON d.batch = b.id
    WHERE b.partition = ? AND b.id > ? AND b.id <= ?
"""


def live(connection: sqlite3.Connection) -> list[LiveRow]:
    """All entry batches with their dequeues. Nothing is written meanwhile: the store is about to start."""
    dequeues = _grouped(connection.execute("SELECT batch, indexes FROM dequeue"))
    return [
        LiveRow(number, partition, content, count, b"".join(dequeues.pop(number, ())), size, bool(whole))
        for number, partition, content, count, size, whole in connection.execute(_LIVE)
    ]


def chunk(connection: sqlite3.Connection, partition: int, after: int) -> list[StoredBatch]:
    """The next batches of `partition` with an id above `after`; empty at the end."""
    rows = []
    size = 0
    # Both reads see one state of the file.
    connection.execute("BEGIN")
    try:
        for row in connection.execute(_CHUNK, (partition, after, _CHUNK_BATCHES)):
            rows.append(row)
            size += len(row[5])
            if size >= _CHUNK_BYTES:
                break
        last = rows[-1][0] if rows else after
        dequeues = _grouped(connection.execute(_CHUNK_DEQUEUES, (partition, after, last)))
    finally:
        connection.execute("ROLLBACK")
    return [StoredBatch(EntryRow(*row[:5]), row[5], dequeues[row[0]], row[6]) for row in rows]


def sharing(connection: sqlite3.Connection, content: int) -> Sharing | None:
    """A content and all batches on it."""
    connection.execute("BEGIN")
    try:
        found = connection.execute("SELECT columns FROM content WHERE id = ?", (content,)).fetchone()
        batches = connection.execute("SELECT id, entries FROM entry_batch WHERE content = ?", (content,)).fetchall()
        query = "SELECT batch, indexes FROM dequeue WHERE batch = ?"
        dequeues = {number: _grouped(connection.execute(query, (number,)))[number] for number, _ in batches}
    finally:
        connection.execute("ROLLBACK")
    return found and Sharing(found[0], [(entries, dequeues[number]) for number, entries in batches])


def _grouped(rows: Iterable[tuple[int, bytes]]) -> defaultdict[int, list[bytes]]:
    grouped: defaultdict[int, list[bytes]] = defaultdict(list)
    for batch, indexes in rows:
        grouped[batch].append(indexes)
    return grouped
