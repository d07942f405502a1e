"""How one `Changes` becomes one SQLite transaction. Runs in the connection's thread, whole, without the loop."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from services.store.provider import Changes

_CONTENT = "INSERT OR REPLACE INTO content (id, whole, columns) VALUES (?, ?, ?)"
_ENTRY = "INSERT OR IGNORE INTO entry_batch (id, partition, content, count, entries) VALUES (?, ?, ?, ?, ?)"
_DEQUEUE = "INSERT OR IGNORE INTO dequeue (batch, left, indexes) VALUES (?, ?, ?)"
_DELIVERED = "UPDATE entry_batch SET delivered_upto = max(delivered_upto, ?) WHERE id = ?"
_TAKEN = "INSERT OR IGNORE INTO taken (id, partition, origin, upto, messages) VALUES (?, ?, ?, ?, ?)"
# A floor written again unchanged keeps its age: a publisher that is gone is forgotten, even if the owner changes.
_FLOOR = """INSERT INTO floor (partition, origin, uid, at) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET uid = excluded.uid, at = excluded.at WHERE uid <> excluded.uid"""
_REPLACED = "DELETE FROM taken WHERE partition = ? AND origin = ?"
_BELOW = "DELETE FROM taken WHERE partition = ? AND origin = ? AND upto < ?"
_WRITER = "INSERT OR REPLACE INTO writer (origin, sequence, at) VALUES (?, ?, ?)"
_REFUSAL = "INSERT OR IGNORE INTO refusal (origin, sequence, answer, at) VALUES (?, ?, ?, ?)"
_OUTCOME = "INSERT OR IGNORE INTO outcome (id, committed, at) VALUES (?, ?, ?)"
_LEASE = "INSERT OR REPLACE INTO lease (name, epoch, member, role, address) VALUES (?, ?, ?, ?, ?)"
_RECORD = "INSERT OR REPLACE INTO record (kind, key, value, version) VALUES (?, ?, ?, ?)"

Statement = tuple[str, Sequence[tuple[Any, ...]]]


def write(connection: sqlite3.Connection, changes: Changes) -> None:
    """Commits `changes`; raises sqlite3.Error when it could not, and then nothing of them is there."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for sql, rows in _statements(changes):
            if rows:
                connection.executemany(sql, rows)
        connection.execute("COMMIT")
    except BaseException:
        # SQLite rolls back by itself on some failures.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def forget(connection: sqlite3.Connection, before: int) -> None:
    """Forgets writers and publishers that have been silent since `before` (running time, ms)."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for table in ("writer", "refusal", "floor"):
            connection.execute(f"DELETE FROM {table} WHERE at < ?", (before,))  # noqa: S608 - three names
        connection.execute("DELETE FROM taken WHERE (partition, origin) NOT IN (SELECT partition, origin FROM floor)")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def cut_log(connection: sqlite3.Connection) -> bool:
    """Checkpoints and truncates the log; False, without waiting, when a reader uses it."""
    ((patience,),) = connection.execute("PRAGMA busy_timeout").fetchall()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}")
    return not busy


def vacuum(connection: sqlite3.Connection, pages: int) -> None:
    """Gives so many free pages back to the file system, as soon as the log is checkpointed."""
    # The statement takes a step for each page, and has no column: `execute` would take only one step.
    connection.executescript(f"PRAGMA incremental_vacuum({pages})")


def blob_of(transaction: int) -> bytes:
    """A transaction's id as bytes: it is an unsigned 64-bit number, and SQLite's integers are signed."""
    return transaction.to_bytes(8, "big")


def _statements(changes: Changes) -> Iterable[Statement]:
    yield from _removals(changes)
    yield _CONTENT, [(number, True, columns) for number, columns in changes.contents.items()]
    yield _CONTENT, [(number, False, columns) for number, columns in changes.blanked.items()]
    yield _ENTRY, list(changes.entries.values())
    yield _DEQUEUE, changes.dequeues
    yield _DELIVERED, [(upto, batch) for batch, upto in changes.delivered.items()]
    yield from _marks(changes)
    yield _LEASE, list(changes.leases.values())
    yield "DELETE FROM record WHERE kind = ? AND key = ?", [key for key, row in changes.records.items() if row is None]
    yield _RECORD, [row for row in changes.records.values() if row is not None]
    counters = (("origin", changes.origin), ("running", changes.running), ("incarnation", changes.incarnation))
    yield "UPDATE counter SET value = ? WHERE name = ?", [(value, name) for name, value in counters if value]


def _removals(changes: Changes) -> Iterable[Statement]:
    batches = [(batch,) for batch in changes.dead_batches]
    yield "DELETE FROM dequeue WHERE batch = ?", batches
    yield "DELETE FROM entry_batch WHERE id = ?", batches
    yield "DELETE FROM content WHERE id = ?", [(content,) for content in changes.dead_contents]


def _marks(changes: Changes) -> Iterable[Statement]:
    at = changes.at
    yield _REPLACED, list(changes.replaced)
    yield _TAKEN, changes.taken
    yield _FLOOR, [(*key, uid, at) for key, uid in changes.floors.items()]
    yield _BELOW, [(*key, uid) for key, uid in changes.floors.items()]
    yield _WRITER, [(writer, sequence, at) for writer, sequence in changes.writers.items()]
    yield _REFUSAL, [(*row, at) for row in changes.refusals]
    yield _OUTCOME, [(blob_of(number), committed, at) for number, committed in changes.outcomes.items()]
