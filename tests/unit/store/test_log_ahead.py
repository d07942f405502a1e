"""The log of SQLite is made longer before it is needed, and what is ahead in it is nobody's."""

from __future__ import annotations

import shutil
from pathlib import Path

from services.store.providers.sqlite_ahead import LogAhead
from tests.support.store_house import House, content, enqueue


def _length(folder: Path) -> int:
    return (folder / "hopline.db-wal").stat().st_size


async def test_small_commits_seldom_make_the_log_longer(house: House, tmp_path: Path) -> None:
    """One in dozens does, and the others only write where there is something."""
    lengths = []
    for number in range(1, 41):
        await house.append(enqueue(number, 1))
        lengths.append(_length(tmp_path))
    assert len(set(lengths)) < 6


async def test_what_is_ahead_is_no_part_of_the_log(house: House, tmp_path: Path) -> None:
    """After a crash all is read back that was written, and nothing else; the next commit comes behind it."""
    for number in range(1, 6):
        await house.append(enqueue(number, 1))
    assert (tmp_path / "hopline.db-wal").read_bytes().endswith(bytes(4096))
    there = await house.alive()
    copy = tmp_path / "after the crash"
    copy.mkdir()
    for name in ("hopline.db", "hopline.db-wal"):
        shutil.copy(tmp_path / name, copy)
    again = House("sqlite", copy)
    await again.start()
    assert await again.alive() == there
    await again.append(enqueue(6, 1), writer=2)
    await again.restart()
    assert await again.alive() == there | {6: [0]}
    await again.stop()


async def test_a_large_commit_is_followed_by_nothing(house: House, tmp_path: Path) -> None:
    """A stream of large ones would write all of it twice."""
    for number in range(1, 4):
        frame = enqueue(number, 1)
        frame.contents[0].columns = content(number, 1, size=2 << 20).columns
        await house.append(frame)
    assert _length(tmp_path) < 8 << 20
    assert not (tmp_path / "hopline.db-wal").read_bytes().endswith(bytes(4096))


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    """Nothing is made in its place: that is SQLite's."""
    LogAhead(tmp_path / "log").keep()
    assert not (tmp_path / "log").exists()
