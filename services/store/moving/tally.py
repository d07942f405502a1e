"""Counts a stream of pieces: the rows of each kind, and the messages of each queue, with checksums.

Each provider gives the rows of a kind in another order, so their checksums are added up. A queue's checksum is made
batch by batch. There may be too many batches for memory, so they are in a temporary file of SQLite's.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from services.rpc.store_pb2 import BackupPiece, Dequeue, EntryColumns
from services.store.moving.mark import KEY, KIND

_KINDS = (
    "contents",
    "entries",
    "dequeues",
    "delivered",
    "taken",
    "floors",
    "writers",
    "refusals",
    "outcomes",
    "leases",
    "records",
)
_BITS = 128
_TABLES = """
    PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
    CREATE TABLE content (id INTEGER PRIMARY KEY, digest BLOB);
    CREATE TABLE batch (id INTEGER PRIMARY KEY, content INTEGER, entries BLOB);
    CREATE TABLE gone (batch INTEGER, remaining INTEGER, indexes BLOB, PRIMARY KEY (batch, remaining)) WITHOUT ROWID;
    BEGIN;
"""
_BATCHES = """
    SELECT b.id, c.digest, b.entries FROM batch b LEFT JOIN content c ON c.id = b.content ORDER BY b.id
"""


@dataclass(slots=True)
class Sum:
    """Number and checksum of all rows of a kind."""

    rows: int = 0
    checksum: int = 0

    def add(self, row: bytes) -> None:
        """Adds a row; their order makes no difference."""
        self.rows += 1
        self.checksum = (self.checksum + int.from_bytes(_digest(row))) % (1 << _BITS)


class Queue(NamedTuple):
    """Number and checksum of a queue's messages that are left."""

    messages: int
    checksum: str


class _Counting:
    """Counts one queue, run by run."""

    def __init__(self) -> None:
        self._messages = 0
        self._hash = hashlib.blake2b(digest_size=_BITS // 8)

    def add(self, said: bytes, left: Sequence[int]) -> None:
        """Adds one run of a batch; `said` describes the run and its content."""
        self._messages += len(left)
        self._hash.update(said + repr(left).encode())

    def queue(self) -> Queue:
        """The result."""
        return Queue(self._messages, self._hash.hexdigest())


class Tally:
    """Takes one piece after the other, then gives the counts."""

    def __init__(self) -> None:
        self.kinds: defaultdict[str, Sum] = defaultdict(Sum)
        self.names: dict[int, str] = {}
        """Names of queues, by id."""
        self._scratch = sqlite3.connect("", isolation_level=None)  # a file without a name, gone when it is closed
        self._scratch.executescript(_TABLES)

    def add(self, piece: BackupPiece) -> None:
        """Adds the next piece."""
        for kind in _KINDS:
            for row in getattr(piece, kind):
                if kind != "records" or (row.kind, row.key) != (KIND, KEY):
                    self.kinds[kind].add(row.SerializeToString(deterministic=True))
        self._keep("content", [(row.id, _digest(row.columns)) for row in piece.contents])
        self._keep("batch", [(row.id, row.content, row.entries) for row in piece.entries])
        self._keep("gone", [(row.batch, row.left, row.indexes) for row in piece.dequeues])
        for record in piece.records:
            if record.kind == "queue":
                with suppress(ValueError, KeyError, TypeError):  # a record of any release: the name is only for people
                    found = json.loads(record.value)
                    self.names[found["id"]] = f"{found['name']} in {found['virtual_host']}"

    def _keep(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._scratch.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)  # noqa: S608 - ours

    def queues(self) -> dict[int, Queue]:
        """The queues that have messages, by id."""
        found: defaultdict[int, _Counting] = defaultdict(_Counting)
        for number, digest, entries in self._scratch.execute(_BATCHES):
            gone = self._gone(number)
            for queue, said, left in _runs(EntryColumns.FromString(entries), gone):
                if left:
                    found[queue].add(b"%d %s %s" % (number, said, digest or b""), left)
        return {number: counting.queue() for number, counting in found.items()}

    def _gone(self, batch: int) -> frozenset[int]:
        rows = self._scratch.execute("SELECT indexes FROM gone WHERE batch = ?", (batch,)).fetchall()
        return frozenset(Dequeue.FromString(b"".join(row for (row,) in rows)).indexes) if rows else frozenset()

    def differences(self, other: Tally) -> list[str]:
        """The differences between this tally and `other`, for people."""
        ours, theirs = self.queues(), other.queues()
        found = [
            f"queue {self.names.get(queue, queue)}: {_shown(ours.get(queue))}, and there {_shown(theirs.get(queue))}"
            for queue in sorted(ours.keys() | theirs.keys())
            if ours.get(queue) != theirs.get(queue)
        ]
        for kind in _KINDS:
            mine, there = self.kinds[kind], other.kinds[kind]
            if mine != there:
                found.append(f"{kind}: {mine.rows}, and there {there.rows}, which are not the same")
        return found

    def close(self) -> None:
        """Removes the temporary file."""
        self._scratch.close()


def _runs(columns: EntryColumns, gone: frozenset[int]) -> Iterator[tuple[int, bytes, Sequence[int]]]:
    """Queue, first message and entries of each run, without the entries that are gone."""
    start = 0
    for queue, first, count in zip(columns.queue_id, columns.first, columns.count, strict=True):
        entries = range(start, start + count)
        yield queue, b"%d" % first, [index for index in entries if index not in gone] if gone else entries
        start += count


def _shown(queue: Queue | None) -> str:
    return f"{queue.messages} messages ({queue.checksum})" if queue else "none"


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_BITS // 8).digest()
