"""Reads of the SQLite provider; each is one short read, so that none holds the log back from being checkpointed."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from services.store.provider import EntryRow, LiveRow, Sharing, StoredBatch

Row = tuple[Any, ...]

_CHUNK_BYTES = 1 << 20  # of contents; several processes may read back at once

# length() of a blob reads only the row's header.
_LIVE = """
    SELECT b.id, b.partition, b.content, b.count, length(c.columns), c.whole
    FROM entry_batch b JOIN content c ON c.id = b.content
"""
_CHUNK = "SELECT id, partition, content, count, entries, delivered_upto FROM entry_batch WHERE id IN ({}) ORDER BY id"
_CHUNK_DEQUEUES = "SELECT batch, indexes FROM dequeue WHERE batch IN ({})"
_NUMBERS = "SELECT id FROM entry_batch WHERE partition = ? ORDER BY id"
_COLUMNS = "SELECT columns FROM content WHERE id = ?"


def live(connection: sqlite3.Connection) -> list[LiveRow]:
    """All entry batches with their dequeues. Nothing is written meanwhile: the store is about to start."""
    dequeues = _grouped(connection.execute("SELECT batch, indexes FROM dequeue"))
    return [
        LiveRow(number, partition, content, count, b"".join(dequeues.pop(number, ())), size, bool(whole))
        for number, partition, content, count, size, whole in connection.execute(_LIVE)
    ]


def numbers(connection: sqlite3.Connection, partition: int) -> list[int]:
    """The ids of the batches of a partition, ascending."""
    return [number for (number,) in connection.execute(_NUMBERS, (partition,))]


def chunk(connection: sqlite3.Connection, wanted: Sequence[int]) -> list[StoredBatch]:
    """Of the batches with these ids those that are there, as many as go into a chunk."""
    marks = ",".join("?" * len(wanted))
    # All reads see one state of the file.
    connection.execute("BEGIN")
    try:
        rows = list(_with_columns(connection, connection.execute(_CHUNK.format(marks), wanted)))
        dequeues = _grouped(connection.execute(_CHUNK_DEQUEUES.format(marks), wanted))
    finally:
        connection.execute("ROLLBACK")
    return [StoredBatch(EntryRow(*row[:5]), columns, dequeues[row[0]], row[5]) for row, columns in rows]


def _with_columns(connection: sqlite3.Connection, rows: Iterable[Row]) -> Iterator[tuple[Row, bytes]]:
    """Rows with what they refer to, as many as go into a chunk; what several in a row have is read once."""
    size, content, columns = 0, None, None
    for row in rows:
        if row[2] != content:
            content = row[2]
            (columns,) = connection.execute(_COLUMNS, (content,)).fetchone() or (None,)
            size += len(columns or b"")
        if columns is not None:
            yield row, columns
        if size >= _CHUNK_BYTES:
            return


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
