"""What the store reports of its disk, and where."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
import structlog

from services.common import disk as rooms
from services.common.clock import monotonic
from services.common.disk import Room, must_give_way, reserve
from services.common.errors import InternalError
from services.store.disk import Disk
from services.store.providers import sqlite_spare
from services.store.providers.sqlite import SQLiteProvider
from services.store.providers.sqlite_database import Database
from tests.support.programs import until
from tests.support.store_house import House, content, dequeue, enqueue

_MIB = 1 << 20
_BUSY_SECONDS = 4  # a connection is patient with others for 5


def size(folder: Path, pattern: str = "*") -> int:
    """Bytes of the files."""
    return sum(path.stat().st_size for path in folder.glob(pattern))


class Desk:
    """A disk with as much room as the test says, of 1000 MiB."""

    def __init__(self, configured: int = 0) -> None:
        self.free = 1000
        self.now = 0.0
        self.told: list[str] = []
        self.disk = Disk(self._room, configured, self.told.append, clock=lambda: self.now)

    def _room(self) -> Room:
        return Room(self.free * _MIB, 1000 * _MIB)

    def has(self, free: int) -> list[str]:
        """So many MiB are free; gives everything that was told so far."""
        self.free = free
        self.disk.look()
        return self.told

    def wait(self) -> list[str]:
        """For as long as publishers wait when there is room again."""
        self.now += 5
        self.disk.look()
        return self.told


def test_low_and_enough_again() -> None:
    """Said below the reserve, with how much is free, anew each second at most; taken back after a while a quarter above
    it. The log has a line for the first and for the last.
    """
    desk = Desk()
    low = "low on disk: 63 MiB free, 64 MiB must be"
    with structlog.testing.capture_logs() as logs:
        assert desk.has(64) == []
        assert desk.has(63) == [low]
        assert desk.has(10) == [low]
        assert desk.has(79) == [low]
        lower = low.replace("63", "79", 1)
        assert desk.wait() == [low, lower]
        assert desk.has(80) == [low, lower]
        assert desk.wait() == [low, lower, ""]
    assert [line["log_level"] for line in logs] == ["warning", "info"]
    assert "make room" in logs[0]["do"]


def test_a_failing_commit() -> None:
    """Its reason is told until one is written, once for all attempts, and what is short besides is told after it."""
    desk = Desk()
    desk.free = 0
    for _ in range(3):
        desk.disk.failed(OSError(28, "No space left on device"))
    assert desk.told == ["cannot write: [Errno 28] No space left on device"]
    desk.disk.wrote()
    assert desk.told[1:] == ["low on disk: 0 KiB free, 64 MiB must be"]
    desk.free = 500
    desk.disk.wrote()
    assert desk.wait()[2:] == [""]


def test_another_reason() -> None:
    """What keeps it from writing is said as it is by now, and logged once."""
    desk = Desk()
    with structlog.testing.capture_logs() as logs:
        desk.disk.failed(InternalError("the stream does not answer"))
        desk.disk.failed(InternalError("is away"))
        desk.disk.failed(InternalError("is away"))
    assert desk.told == ["cannot write: the stream does not answer", "cannot write: is away"]
    assert len(logs) == 1


@pytest.mark.parametrize(
    ("configured", "total", "kept"), [(0, 10_000 * _MIB, 64 * _MIB), (0, 100 * _MIB, 10 * _MIB), (7, 100, 7)]
)
def test_reserve(configured: int, total: int, kept: int) -> None:
    """What is said, or else a tenth of a small disk and 64 MiB of a large one."""
    assert reserve(configured, total) == kept


def test_others_give_way_first() -> None:
    """What is no message is not written any more before messages have to wait."""
    assert not must_give_way(0, Room(128 * _MIB, 1000 * _MIB))
    assert must_give_way(0, Room(127 * _MIB, 1000 * _MIB))
    assert not must_give_way(0, None)


async def test_the_log_is_folded_in_early_where_there_is_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 16 MiB free the log is folded in after 2 MiB, so that both it and what it becomes find room."""
    provider = SQLiteProvider(tmp_path)
    house = House("small", tmp_path, lambda _: provider)
    monkeypatch.setattr(rooms, "room", lambda _: Room(16 * _MIB, 160 * _MIB))
    await house.start()
    for number in range(0, 12_000, 100):
        frame = enqueue(number, 100)
        frame.contents[0].columns = content(number, 100, size=1000).columns
        await house.append(frame)
    log, file = size(tmp_path, "*-wal"), size(tmp_path, "*.db")
    await house.stop()
    assert file > 6 * _MIB
    assert log < 8 * _MIB


async def test_what_is_given_back_when_room_is_short(tmp_path: Path) -> None:
    """The log and the pages of messages that are gone are the file system's again."""
    provider = SQLiteProvider(tmp_path)
    house = House("small", tmp_path, lambda _: provider)
    await house.start()
    for number in range(0, 3000, 100):
        frame = enqueue(number, 100)
        frame.contents[0].columns = content(number, 100, size=1000).columns
        await house.append(frame)
    await provider.make_room()
    for number in range(0, 3000, 100):
        await house.append(dequeue(number, *range(100)))
    full = size(tmp_path)
    await provider.make_room()
    left = size(tmp_path, "*.db*")
    await house.stop()
    assert full > 3 * _MIB
    assert left < _MIB


async def test_reading_does_not_hold_up_commits_when_room_is_short(tmp_path: Path) -> None:
    """While a snapshot holds the log there is no waiting for it; once it is over the log is cut."""
    provider = SQLiteProvider(tmp_path)
    house = House("small", tmp_path, lambda _: provider)
    await house.start()
    await house.append(enqueue(10, 1))
    reader = Database(tmp_path / "hopline.db")
    await reader.open()
    await reader.rows("BEGIN")
    await reader.rows("SELECT * FROM lease")
    snapshot = provider.snapshot()
    await anext(snapshot)
    await house.append(dequeue(10, 0))
    started = monotonic()
    await provider.make_room()
    await snapshot.aclose()
    await provider.make_room()
    assert monotonic() - started < _BUSY_SECONDS
    assert size(tmp_path, "*-wal")
    await reader.close()
    await provider.make_room()
    assert not size(tmp_path, "*-wal")
    await house.stop()


class Full:
    """A disk on which SQLite can open nothing while the file `fill` is there, or as long as room is set aside."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fill = folder / "fill"
        self.spare = folder / "hopline.spare"
        opens = Database.open

        async def attempt(database: Database) -> None:
            if self.fill.exists() or self.spare.exists():
                failure = sqlite3.OperationalError("database or disk is full")
                failure.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise failure
            await opens(database)

        monkeypatch.setattr(Database, "open", attempt)


async def test_a_start_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store starts with the room that was set aside, serves what it has, and sets some aside again."""
    house = House("sqlite", tmp_path)
    await house.start()
    await house.append(enqueue(10, 3))
    await house.stop()
    full = Full(tmp_path, monkeypatch)
    assert size(tmp_path, "*.spare") == sqlite_spare.SIZE
    with structlog.testing.capture_logs() as logs:
        await house.start()
    assert [line["log_level"] for line in logs] == ["warning"]
    assert await house.alive() == {10: [0, 1, 2]}
    assert full.spare.exists()
    await house.stop()


async def test_a_start_without_any_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is left either the start waits, says so once with what to do, and goes on when there is room."""
    monkeypatch.setattr(sqlite_spare, "_AGAIN_SECONDS", 0.01)
    full, house = Full(tmp_path, monkeypatch), House("sqlite", tmp_path)
    full.fill.write_bytes(b"")
    with structlog.testing.capture_logs() as logs:
        starting = asyncio.ensure_future(house.start())
        await until(lambda: logs)
        await asyncio.sleep(0.05)
        full.fill.unlink()
        await asyncio.wait_for(starting, 5)
    await house.stop()
    assert [line["log_level"] for line in logs] == ["error"]
    assert "make room" in logs[0]["do"]


async def test_a_file_that_is_none_ends_the_start(tmp_path: Path) -> None:
    """What is wrong for another reason than room is told at once."""
    (tmp_path / "hopline.db").write_bytes(b"no database" * 1000)
    with pytest.raises(InternalError, match="not a database"):
        await House("sqlite", tmp_path).start()
