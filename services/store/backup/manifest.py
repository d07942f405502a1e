"""What is in a backup: counted while it is written, and again while it is read."""

from __future__ import annotations

import sqlite3
from collections import Counter

from pydantic import BaseModel

from services.common.release import RELEASE
from services.common.restored import utc
from services.rpc.store_pb2 import BackupHead, BackupPiece

# The format of the file and of its pieces: a release that adds data which must not be lost increments it, since a
# former release would restore the rest and report nothing.
FORMAT = 1

_BATCHES = """
    PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
    CREATE TABLE batch (id INTEGER PRIMARY KEY, remaining INTEGER);
    BEGIN;
"""
_BATCH = "INSERT OR REPLACE INTO batch VALUES (?, ?)"
_LEFT = "UPDATE batch SET remaining = min(remaining, ?) WHERE id = ?"


class Manifest(BaseModel):
    """The last part of a backup's file. `messages` are entries that are left, a message counts in each queue."""

    format: int = FORMAT
    release: str
    time_ms: int
    generation: int
    pieces: int
    partitions: list[int]  # that have messages
    messages: int
    batches: int
    contents: int
    content_bytes: int
    leases: int
    records: dict[str, int]  # by kind: queue, user, …

    def __str__(self) -> str:
        records = ", ".join(f"{count} {kind}" for kind, count in sorted(self.records.items())) or "none"
        made = f"format {self.format}, by Hopline {self.release}"
        return (
            f"backup of {utc(self.time_ms)}, generation {self.generation}, {made}\n"
            f"{self.messages} messages in {len(self.partitions)} partitions, {self.content_bytes} bytes\n"
            f"records: {records}"
        )


class Count:
    """Takes one piece after the other."""

    def __init__(self) -> None:
        self._head = BackupHead()
        self._numbers: Counter[str] = Counter()
        self._records: Counter[str] = Counter()
        self._partitions: set[int] = set()
        # Entries left of each batch: in a temporary file, since they may be too many for memory.
        self._scratch = sqlite3.connect("", isolation_level=None)
        self._scratch.executescript(_BATCHES)
        self.ended = False
        """Whether the last piece has come."""

    def add(self, piece: BackupPiece) -> None:
        """Counts the next piece."""
        self._numbers["pieces"] += 1
        if piece.HasField("head"):
            self._head = piece.head
        self._partitions.update(batch.partition for batch in piece.entries)
        self._scratch.executemany(_BATCH, [(batch.id, batch.count) for batch in piece.entries])
        self._scratch.executemany(_LEFT, [(dequeues.left, dequeues.batch) for dequeues in piece.dequeues])
        self._numbers["contents"] += len(piece.contents)
        self._numbers["content_bytes"] += sum(len(content.columns) for content in piece.contents)
        self._numbers["leases"] += len(piece.leases)
        self._records.update(record.kind for record in piece.records)
        self.ended = self.ended or piece.incarnation > 0

    def manifest(self) -> Manifest:
        """The manifest of all pieces so far."""
        numbers = {name: self._numbers[name] for name in ("pieces", "contents", "content_bytes", "leases")}
        ((batches, messages),) = self._scratch.execute("SELECT count(*), coalesce(sum(remaining), 0) FROM batch")
        return Manifest(
            release=RELEASE,
            time_ms=self._head.time_ms,
            generation=self._head.generation,
            partitions=sorted(self._partitions),
            messages=messages,
            batches=batches,
            records=dict(self._records),
            **numbers,
        )

    def close(self) -> None:
        """Counts no more."""
        self._scratch.close()
