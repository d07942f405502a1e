"""The tables, as a list of migrations: a released one is never edited, changes are appended."""

from __future__ import annotations

import sqlite3

import structlog

from services.common.clock import epoch_ms
from services.common.errors import InternalError

log = structlog.get_logger()

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
    """
    -- What may be sent again was known by the highest uid of a partition and a publisher, which is not exact: where a
    -- message goes to several queues, some of it could come behind. Publishers of that release do not outlive it, so
    -- all that it took counts as heard: nothing of it comes again.
    CREATE TABLE floor (
        partition INTEGER NOT NULL, origin INTEGER NOT NULL, uid INTEGER NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (partition, origin)
    ) WITHOUT ROWID;
    INSERT INTO floor SELECT partition, origin, uid + 1, at FROM watermark;
    DROP TABLE watermark;
    CREATE TABLE taken (
        partition INTEGER NOT NULL, origin INTEGER NOT NULL, upto INTEGER NOT NULL, id INTEGER NOT NULL,
        messages BLOB NOT NULL, PRIMARY KEY (partition, origin, upto, id)
    ) WITHOUT ROWID;
    -- The answer that a frame had, or empty: refused whole.
    ALTER TABLE refusal ADD COLUMN answer BLOB NOT NULL DEFAULT x'';
    """,
    """
    -- Ages were told by the wall clock, which jumps; now by the time that the store has run. What is there is new.
    INSERT INTO counter VALUES ('running', 0);
    UPDATE outcome SET at = 0;
    UPDATE writer SET at = 0;
    UPDATE refusal SET at = 0;
    UPDATE floor SET at = 0;
    """,
]


def migrate(connection: sqlite3.Connection) -> None:
    """Brings the file to this release's schema, each step in a transaction; raises InternalError on a newer one.

    Logs a migration of existing data: a former release cannot open it afterwards.
    """
    connection.execute("CREATE TABLE IF NOT EXISTS migration (version INTEGER PRIMARY KEY, at INTEGER NOT NULL)")
    (version,) = connection.execute("SELECT coalesce(max(version), 0) FROM migration").fetchone()
    if version > len(MIGRATIONS):
        raise InternalError(f"the data was written by a newer release (schema {version}, known: {len(MIGRATIONS)})")
    if 0 < version < len(MIGRATIONS):
        log.info("data of a former release is brought to this one's form", schema=version, becomes=len(MIGRATIONS))
    for number in range(version, len(MIGRATIONS)):
        row = f"INSERT INTO migration VALUES ({number + 1}, {epoch_ms() // 1000})"  # noqa: S608 - two integers
        connection.executescript(f"BEGIN; {MIGRATIONS[number]}; {row}; COMMIT")
