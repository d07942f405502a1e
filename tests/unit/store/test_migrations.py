"""Data of former releases opens, and says what became of it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import structlog

from services.rpc.store_pb2 import Dequeue, Fence, JournalFrame
from services.store.providers.sqlite_schema import MIGRATIONS
from tests.support.store_house import House, content, dequeue, entries


def written_by(folder: Path, release: int) -> sqlite3.Connection:
    """A database as the release left it."""
    connection = sqlite3.connect(folder / "hopline.db")
    connection.execute("CREATE TABLE migration (version INTEGER PRIMARY KEY, at INTEGER NOT NULL)")
    for number, script in enumerate(MIGRATIONS[:release], 1):
        connection.executescript(script)
        connection.execute("INSERT INTO migration VALUES (?, 0)", (number,))
    return connection


async def test_marks_of_the_first_release(tmp_path: Path) -> None:
    """What its publishers had sent counts as heard, dequeues count once, and what was refused stays refused."""
    connection = written_by(tmp_path, 1)
    batch = entries(10, 3)
    gone = Dequeue(batch=10, indexes=[1]).SerializeToString()
    connection.execute("INSERT INTO content VALUES (10, 1, ?)", (content(10, 3).columns,))
    connection.execute("INSERT INTO entry_batch VALUES (10, 1, 10, 3, 0, ?)", (batch.entries,))
    connection.execute("INSERT INTO dequeue VALUES (10, 2, ?)", (gone,))
    connection.execute("INSERT INTO watermark VALUES (1, 7, 12, 0)")
    connection.execute("INSERT INTO writer VALUES (5, 2, 0)")
    connection.executemany("INSERT INTO refusal VALUES (5, ?, 0)", [(1,), (2,)])
    connection.commit()
    connection.close()
    house = House("sqlite", tmp_path)
    with structlog.testing.capture_logs() as logs:
        await house.start()
    assert [line["schema"] for line in logs] == [1]
    again, recovered = await house.recovered()
    assert [(floor.origin, floor.uid) for floor in again.floors] == [(7, 13)]
    assert list(recovered.dequeued) == [1]
    await house.append(dequeue(10, 1))
    assert await house.alive() == {10: [0, 2]}
    fenced = JournalFrame(fences=[Fence(lease="partition/1", epoch=9)])
    assert list((await house.append(fenced, 5, 1)).fenced) == ["partition/1"]
    assert (await house.append(JournalFrame(), 5, 2)).refused
    await house.stop()


async def test_ages_that_the_wall_clock_told(tmp_path: Path) -> None:
    """What was written by a clock that may have jumped counts as written when the data was opened."""
    connection = written_by(tmp_path, 2)
    connection.executemany("INSERT INTO outcome VALUES (?, ?, 1)", [(1, bytes(7) + b"\1"), (1 << 60, bytes(7) + b"\2")])
    connection.execute("INSERT INTO writer VALUES (5, 2, 1)")
    connection.execute("INSERT INTO floor VALUES (1, 7, 12, 1)")
    connection.commit()
    connection.close()
    house = House("sqlite", tmp_path)
    await house.start()
    await house.engine._housekeeping._step(tidy=True)
    assert {row.transaction for row in await house.provider.outcomes()} == {1, 2}
    assert await house.provider.writers() == {5: 2}
    assert [floor.origin for floor in (await house.recovered())[0].floors] == [7]
    house.run(2 * 86_400)
    await house.engine._housekeeping._step(tidy=True)
    assert await house.provider.outcomes() == []
    assert await house.provider.writers() == {}
    await house.stop()
