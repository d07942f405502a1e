"""What footers say of the least and the greatest value: files and row groups are passed over by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.mgmt.ledger.pace import no_rest
from services.mgmt.ledger.parquet import write
from services.mgmt.ledger.schema import TABLES
from services.mgmt.lookup.database import Database, Row
from tests.support.ledger_files import NOON, LedgerFiles, uid

HOUR = "date=2026-08-21/hour=12"
ROWS = 3000


def _written(folder: Path, rows: LedgerFiles, table: str) -> Path:
    """As mgmt writes it."""
    path = folder / table / HOUR / "a.parquet"
    path.parent.mkdir(parents=True)
    write(rows.tables()[table].select(TABLES[table].names).cast(TABLES[table]), table, path, no_rest)
    return path


def _with_a_flip(path: Path, end: bytes, byte: int, bit: int) -> Iterator[int]:
    """The file with one bit flipped where its footer says this end, for each place where it does."""
    whole = path.read_bytes()
    place = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    while (place := whole.find(end, place + 1)) > 0:
        flipped = bytearray(whole)
        flipped[place + byte] ^= 1 << bit
        path.write_bytes(flipped)
        yield place


def _names(folder: Path, count: int) -> Path:
    rows = LedgerFiles(folder / "rows")
    for number in range(count):
        rows.named(f"id{number:05}", uid(number), at=number)
    return _written(folder, rows, "ids")


def test_id(tmp_path: Path) -> None:
    """A row group's greatest id that seems to be a smaller one hides no id: the file is passed over and named."""
    path, database = _names(tmp_path, 20_000), Database(tmp_path)
    database.offer({})
    hours = database.hours("ids")
    assert len(database.named("id08190", hours, 9)) == 1
    flips = 0
    for _ in _with_a_flip(path, b"id08191", 5, 0):
        assert (database.named("id08190", hours, 9), len(database.damaged)) == ([], 1)
        flips += 1
    assert flips


def _speaking_of(database: Database, asked: int) -> list[Row]:
    condition = "first_uid <= $uid and last_uid >= $uid"
    return database.select("stages", "row", condition, {"uid": asked}, database.hours("stages"), having=asked)


def test_uid(tmp_path: Path) -> None:
    """A message is found, or the file that has it is passed over and named: whichever end of uids has changed."""
    rows = LedgerFiles(tmp_path / "rows")
    for number in range(ROWS):
        rows.stage("enqueued", uid(number), at=number, queue="q")
    path, database = _written(tmp_path, rows, "stages"), Database(tmp_path)
    database.offer({})
    assert len(_speaking_of(database, uid(2000))) == 1
    named = 0
    for place in _with_a_flip(path, uid(ROWS - 1).to_bytes(8, "little"), 1, 3):
        assert len(_speaking_of(database, uid(2000))) == (0 if database.damaged else 1), place
        named += len(database.damaged)
    assert named


@pytest.mark.parametrize(("end", "asked"), [(uid(ROWS - 1), uid(2000)), (NOON + ROWS - 1, uid(ROWS - 1))])
def test_of_names(tmp_path: Path, end: int, asked: int) -> None:
    """The ids of a uid are found, or the file that has them is named: whichever end of uids or times has changed."""
    path, database = _names(tmp_path, ROWS), Database(tmp_path)
    database.offer({})
    hours, about = database.hours("ids"), (NOON + ROWS - 500, NOON + ROWS)
    assert len(database.names([asked], hours, about)) == 1
    named = 0
    for place in _with_a_flip(path, end.to_bytes(8, "little"), 1, (end >> 8 & 0xFF).bit_length() - 1):
        assert len(database.names([asked], hours, about)) == (0 if database.damaged else 1), place
        named += len(database.damaged)
    assert named
