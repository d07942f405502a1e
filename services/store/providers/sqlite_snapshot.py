"""A snapshot of the SQLite file at one moment, read in one transaction beside the commits."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from services.store.provider import Changes
from services.store.snapshot import Row, Table, counted, pieces

# The taken rows come before the floors, which remove some of them.
_TABLES = {
    "contents": "SELECT id, columns, whole FROM content",
    "entries": "SELECT id, partition, content, count, entries FROM entry_batch",
    "dequeues": "SELECT batch, left, indexes FROM dequeue",
    "delivered": "SELECT id, delivered_upto FROM entry_batch WHERE delivered_upto > 0",
    "taken": "SELECT id, partition, origin, upto, messages FROM taken",
    "floors": "SELECT partition, origin, uid FROM floor",
    "writers": "SELECT origin, sequence FROM writer",
    "refusals": "SELECT origin, sequence, answer FROM refusal",
    "leases": "SELECT name, epoch, member, role, address FROM lease",
    "records": "SELECT kind, key, value, version FROM record",
}


def begin(connection: sqlite3.Connection) -> Iterator[Changes]:
    """The pieces of a snapshot of this moment; the transaction ends with the connection."""
    connection.execute("BEGIN")
    # A transaction sees the data as it is at its first read.
    counters = dict(connection.execute("SELECT name, value FROM counter"))
    return _pieces(connection, counters)


def _pieces(connection: sqlite3.Connection, counters: dict[str, int]) -> Iterator[Changes]:
    running = counters["running"]
    yield from pieces(running, _tables(connection))
    yield counted(running, counters["origin"], counters["incarnation"])


def _tables(connection: sqlite3.Connection) -> Iterator[Table]:
    for name, sql in _TABLES.items():
        yield name, connection.execute(sql)
    yield "outcomes", _outcomes(connection)


def _outcomes(connection: sqlite3.Connection) -> Iterator[Row]:
    for number, committed in connection.execute("SELECT id, committed FROM outcome ORDER BY at, id"):
        yield int.from_bytes(number, "big"), committed
