"""The store in one SQLite file: write-ahead log, every commit synced, checkpoints and reads beside the commits."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path

import structlog

from services.common import disk
from services.common.disk import Room
from services.common.errors import InternalError
from services.common.runtime import Tasks
from services.store.chunks import in_chunks
from services.store.folder import DATABASE
from services.store.provider import (
    Changes,
    LeaseRow,
    LiveRow,
    OutcomeRow,
    RecordRow,
    RefusalRow,
    Sharing,
    StoredBatch,
    TakenRow,
)
from services.store.providers import sqlite_given, sqlite_read, sqlite_snapshot, sqlite_write
from services.store.providers.sqlite_ahead import LogAhead
from services.store.providers.sqlite_database import LARGE_CACHE, Database
from services.store.providers.sqlite_schema import migrate
from services.store.providers.sqlite_spare import Spare

# Log written since the last checkpoint, roughly, at which the next one starts. A checkpoint may make the file grow by
# as much, so the less room there is, the sooner it must come.
_CHECKPOINT_BYTES = 64 << 20
_CHECKPOINT_AT_LEAST = 1 << 20
_CHECKPOINT_SHARE = 8  # an eighth of what is free
_CHECKPOINT_ROUNDS = 3
# What a commit writes besides blobs: the pages of rows and indexes that it touches.
_COMMIT_PAGES = 8
# Given back to the file system at once, and free space of the file that is kept for the next peak.
_VACUUM_BYTES = 8 << 20
_DISK = "if it comes again, see that the disk has room and is sound"
_KEEP = "keep both together, and see that the disk has room and is sound"
_KEEP_FREE_BYTES = 64 << 20
# The same while there is little room: little at once, since it goes through the log, and nothing is kept.
_VACUUM_BYTES_WHEN_LOW = 1 << 20
_VACUUM_ROUNDS_WHEN_LOW = 16

log = structlog.get_logger()


class SQLiteProvider:
    """A file in a folder. One connection writes, one reads, one checkpoints."""

    def __init__(self, folder: Path) -> None:
        path = folder / DATABASE
        self._path = path
        self._folder = str(folder)
        self._spare = Spare(folder)
        self._writer = Database(path, LARGE_CACHE)
        self._reader = Database(path)
        self._checkpointer = Database(path)
        self._tasks = Tasks()
        self._unchecked = 0
        self._unfolded = 0  # bytes of the log by which the file may grow
        self._checkpoint_at = _CHECKPOINT_BYTES
        self._checkpointing = False
        self._snapshots = 0  # under way
        self._page = 0  # bytes, of a file that may be older than this release
        self._ahead = LogAhead(path.with_name(f"{path.name}-wal"))

    async def open(self, *, patient: bool = True) -> None:
        """On a full disk it uses the room that was set aside; without that it waits for room, if `patient`."""
        try:
            await (self._spare.insist(self._open) if patient else self._open())
        except sqlite3.Error as failure:
            raise InternalError(f"cannot use {self._path}: {failure}") from failure

    async def _open(self) -> None:
        try:
            self._unfolded = _size(self._path.with_name(f"{self._path.name}-wal"))
            await self._writer.open()
            await self._writer.run(migrate)
            ((self._page,),) = await self._writer.rows("PRAGMA page_size")
            await self._reader.open()
            await self._checkpointer.open()
        except sqlite3.Error:
            await self._close_connections()
            raise

    async def close(self) -> None:
        """Closes the database, if it is open; leaves one file, without a log."""
        await self._tasks.stop()
        await self._reader.close()
        await self._checkpointer.close()
        if not self._writer.is_open:
            return
        try:
            await self._writer.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as failure:
            log.warning("log stays beside the file until the next start", reason=str(failure), do=_KEEP)
        await self._writer.close()

    async def _close_connections(self) -> None:
        for database in (self._reader, self._checkpointer, self._writer):
            await database.close()

    async def commit(self, changes: Changes) -> None:
        await self._writer.run(self._write, changes)
        size = _COMMIT_PAGES * self._page + sum(map(len, changes.contents.values()))
        self._unchecked += size
        self._unfolded += size
        if self._unchecked >= self._checkpoint_at and not self._checkpointing:
            self._checkpointing = True
            self._unchecked = 0
            self._tasks.start(self._checkpoint(), "checkpoint")

    def _write(self, connection: sqlite3.Connection, changes: Changes) -> None:
        sqlite_write.write(connection, changes)
        if self._checkpoint_at == _CHECKPOINT_BYTES:  # else there is little room
            self._ahead.keep()

    async def _checkpoint(self) -> None:
        # The bulk is copied while commits go on, then what they wrote meanwhile. The little that is left is copied
        # between two commits: only a log that was copied to its end starts anew, and under load there is no other
        # moment at which its end does not move.
        try:
            for _ in range(_CHECKPOINT_ROUNDS):
                await self._checkpointer.rows("PRAGMA wal_checkpoint(PASSIVE)")
            ((busy, length, folded),) = await self._writer.rows("PRAGMA wal_checkpoint(PASSIVE)")
            if not busy and folded == length:
                self._unfolded = 0
        except sqlite3.Error as failure:
            log.warning("checkpoint failed, the next will do more", reason=str(failure), do=_DISK)
        finally:
            self._checkpointing = False

    def room(self) -> Room | None:
        found = disk.room(self._folder)
        if found is not None:
            self._checkpoint_at = max(_CHECKPOINT_AT_LEAST, min(_CHECKPOINT_BYTES, found.free // _CHECKPOINT_SHARE))
            found = found._replace(free=max(0, found.free - self._unfolded))
        return found

    async def make_room(self) -> None:
        """Truncates the log, and gives free pages of the file back; does neither while a snapshot holds the log.

        Commits wait only while the rest behind the bulk of the log is checkpointed, and never for readers.
        """
        await self._checkpointer.rows("PRAGMA wal_checkpoint(PASSIVE)")
        for _ in range(_VACUUM_ROUNDS_WHEN_LOW):
            if self._snapshots or not await self._writer.run(sqlite_write.cut_log):
                return
            self._unfolded = 0
            ((free,),) = await self._reader.rows("PRAGMA freelist_count")
            if not free:
                return
            await self._writer.run(sqlite_write.vacuum, _VACUUM_BYTES_WHEN_LOW // self._page)

    async def tidy(self, outcomes_before: int, marks_before: int) -> None:
        await self._writer.rows("DELETE FROM outcome WHERE at < ?", (outcomes_before,))
        await self._writer.run(sqlite_write.forget, marks_before)
        self._spare.set_aside()
        ((free,),) = await self._reader.rows("PRAGMA freelist_count")
        if free * self._page > _KEEP_FREE_BYTES:
            await self._writer.run(sqlite_write.vacuum, _VACUUM_BYTES // self._page)

    async def live(self) -> list[LiveRow]:
        return await self._reader.run(sqlite_read.live)

    async def floors(self, partition: int) -> list[tuple[int, int]]:
        sql = "SELECT origin, uid FROM floor WHERE partition = ? ORDER BY at, origin"
        rows = await self._reader.rows(sql, (partition,))
        return [(origin, uid) for origin, uid in rows]

    async def taken(self, partition: int) -> list[TakenRow]:
        sql = "SELECT id, partition, origin, upto, messages FROM taken WHERE partition = ?"
        return [TakenRow(*row) for row in await self._reader.rows(sql, (partition,))]

    async def numbers(self, partitions: Sequence[int]) -> dict[int, list[int]]:
        return {each: await self._reader.run(sqlite_read.numbers, each) for each in partitions}

    def batches(self, numbers: Sequence[int]) -> AsyncIterator[StoredBatch]:
        return in_chunks(numbers, lambda some: self._reader.run(sqlite_read.chunk, some))

    async def sharing(self, content: int) -> Sharing | None:
        return await self._reader.run(sqlite_read.sharing, content)

    async def outcomes(self) -> list[OutcomeRow]:
        rows = await self._reader.rows("SELECT id, committed, at FROM outcome ORDER BY at")
        return [OutcomeRow(int.from_bytes(number, "big"), bool(committed), at) for number, committed, at in rows]

    async def writers(self) -> dict[int, int]:
        return dict(await self._reader.rows("SELECT origin, sequence FROM writer"))

    async def refusals(self) -> list[RefusalRow]:
        rows = await self._reader.rows("SELECT origin, sequence, answer FROM refusal")
        return [RefusalRow(*row) for row in rows]

    async def leases(self) -> list[LeaseRow]:
        rows = await self._reader.rows("SELECT name, epoch, member, role, address FROM lease")
        return [LeaseRow(*row) for row in rows]

    async def last_origin(self) -> int:
        ((value,),) = await self._reader.rows("SELECT value FROM counter WHERE name = 'origin'")
        return int(value)

    async def running(self) -> int:
        ((value,),) = await self._reader.rows("SELECT value FROM counter WHERE name = 'running'")
        return int(value)

    async def begin_incarnation(self) -> int:
        sql = "UPDATE counter SET value = value + 1 WHERE name = 'incarnation' RETURNING value"
        ((value,),) = await self._spare.insist(lambda: self._writer.rows(sql))
        self._spare.set_aside()
        return int(value)

    async def records(self) -> list[RecordRow]:
        rows = await self._reader.rows("SELECT kind, key, value, version FROM record")
        return [RecordRow(*row) for row in rows]

    async def snapshot(self) -> AsyncGenerator[Changes, None]:
        """As Provider says, with a connection of its own. It holds the log, which keeps growing until it ends."""
        database = Database(self._path)
        self._snapshots += 1
        try:
            await database.open()
            pieces = await database.run(sqlite_snapshot.begin)
            yield Changes()
            while changes := await database.run(lambda _: next(pieces, None)):
                yield changes
        finally:
            self._snapshots -= 1
            await database.close()

    async def given(self) -> Changes:
        try:
            return await asyncio.to_thread(sqlite_given.given, self._path)
        except sqlite3.Error as failure:
            raise InternalError(f"cannot read {self._path}: {failure}") from failure

    def files(self) -> tuple[str, ...]:
        return self._path.name, f"{self._path.name}-wal", f"{self._path.name}-shm", self._spare.name


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
