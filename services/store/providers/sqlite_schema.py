"""The tables, as a list of migrations: what is released is never edited, what changes is appended."""

from __future__ import annotations

import sqlite3
import time

from services.common.errors import InternalError

MIGRATIONS = [
    """
    -- Everything of the journal is a row per batch, none per message. Ids are chosen by the writers.
    CREATE TABLE content (id INTEGER PRIMARY KEY, whole INTEGER NOT NULL, columns BLOB NOT NULL);
    CREATE TABLE entry_batch (
        id INTEGER PRIMARY KEY, partition INTEGER NOT NULL, content INTEGER NOT NULL, count INTEGER NOT NULL,
        delivered_upto INTEGER NOT NULL DEFAULT 0, entries BLOB NOT NULL
    );
    CREATE INDEX entry_batch_partition ON entry_batch (partition, id);
    CREATE INDEX entry_batch_content ON entry_batch (content);
    CREATE TABLE dequeue (
        batch INTEGER NOT NULL, left INTEGER NOT NULL, indexes BLOB NOT NULL, PRIMARY KEY (batch, left)
    ) WITHOUT ROWID;
    CREATE TABLE watermark (
        partition INTEGER NOT NULL, origin INTEGER NOT NULL, uid INTEGER NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (partition, origin)
    ) WITHOUT ROWID;
    CREATE TABLE writer (origin INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, at INTEGER NOT NULL);
    CREATE TABLE refusal (
        origin INTEGER NOT NULL, sequence INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (origin, sequence)
    ) WITHOUT ROWID;
    -- In the order in which they are forgotten.
    CREATE TABLE outcome (
        at INTEGER NOT NULL, id BLOB NOT NULL, committed INTEGER NOT NULL, PRIMARY KEY (at, id)
    ) WITHOUT ROWID;
    CREATE TABLE lease (
        name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, member TEXT NOT NULL, role TEXT NOT NULL, address TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE record (
        kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (kind, key)
    ) WITHOUT ROWID;
    CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO counter VALUES ('origin', 0), ('incarnation', 0);
    """,
]


def migrate(connection: sqlite3.Connection) -> None:
    """Brings the file to this release's schema, each step in a transaction; raises InternalError on a newer one."""
    connection.execute("CREATE TABLE IF NOT EXISTS migration (version INTEGER PRIMARY KEY, at INTEGER NOT NULL)")
    (version,) = connection.execute("SELECT coalesce(max(version), 0) FROM migration").fetchone()
    if version > len(MIGRATIONS):
        raise InternalError(f"the data was written by a newer release (schema {version}, known: {len(MIGRATIONS)})")
    for number in range(version, len(MIGRATIONS)):
        row = f"INSERT INTO migration VALUES ({number + 1}, {int(time.time())})"  # noqa: S608 - two integers
        connection.executescript(f"BEGIN; {MIGRATIONS[number]}; {row}; COMMIT")
