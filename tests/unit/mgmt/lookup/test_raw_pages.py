"""Pages that are as they were written, by their checksums and the footer's word."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.mgmt.ledger.pace import no_rest
from services.mgmt.ledger.parquet import write
from services.mgmt.ledger.schema import TABLES
from services.mgmt.lookup import pages
from services.mgmt.lookup.pages import FAULTS, Pages, Wanted
from services.mgmt.lookup.raw_pages import chunk_of, is_as_written
from tests.support.ledger_files import LedgerFiles, uid


def _file(folder: Path, table: str) -> Path:
    """As mgmt writes it."""
    rows = LedgerFiles(folder)
    for message in range(300):
        rows.stage("enqueued", uid(message), at=message, queue=f"q{message % 7}")
        rows.named(f"message-{message}", uid(message))
    path = folder / f"{table}.parquet"
    write(rows.tables()[table].select(TABLES[table].names).cast(TABLES[table]), table, path, no_rest)
    return path


def _columns(path: Path) -> list[Any]:
    group = pq.read_metadata(path).row_group(0)
    return [group.column(number) for number in range(group.num_columns)]


def _found(path: Path) -> list[bool]:
    with path.open("rb") as file:
        return [is_as_written(file.fileno(), column) for column in _columns(path)]


def _column_of(table: pa.Table, column: Any) -> pa.ChunkedArray:
    return table[column.path_in_schema.partition(".")[0]]


def _reads(path: Path, column: Any) -> pa.ChunkedArray | None:
    try:
        return _column_of(pq.read_table(path, columns=[column.path_in_schema.partition(".")[0]]), column)
    except (OSError, pa.ArrowException):
        return None


@pytest.mark.parametrize("table", ["stages", "ids"])
def test_as_mgmt_writes_them(tmp_path: Path, table: str) -> None:
    """Every column of a file of the ledger is known to be sound without being decoded."""
    assert all(_found(_file(tmp_path, table)))


@pytest.mark.parametrize("table", ["stages", "ids"])
def test_any_bit(tmp_path: Path, table: str) -> None:
    """Where one has flipped, in a header or in what it is of, that is not known, unless it changes nothing, or keeps
    every reader from reading.
    """
    path = _file(tmp_path, table)
    whole, sound = path.read_bytes(), pq.read_table(path)
    for number, column in enumerate(_columns(path)):
        chunk = chunk_of(column)
        for bit in range(8 * chunk.begin, 8 * (chunk.begin + chunk.size), 8 * chunk.size // 12 | 1):
            flipped = bytearray(whole)
            flipped[bit // 8] ^= 1 << bit % 8
            path.write_bytes(flipped)
            assert not _found(path)[number] or _reads(path, column) in (None, _column_of(sound, column))


def test_without_checksums(tmp_path: Path) -> None:
    """Nothing is known of a file that has none, nor of one that is shorter than its footer says."""
    path = tmp_path / "old.parquet"
    pq.write_table(pa.table({"id": ["a", "b"]}), path)
    assert _found(path) == [False]
    columns = _columns(path)
    os.truncate(path, 4)
    with path.open("rb") as file:
        assert [is_as_written(file.fileno(), column) for column in columns] == [False]


def test_nothing_is_decoded_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sound by its checksums is not read a second time; what is not, Arrow judges."""
    path = _file(tmp_path, "stages")
    monkeypatch.setattr(pages, "_look_at", None)
    wanted = Wanted(frozenset({"stage", "uids", "queue"}))
    Pages().verify(str(path), 1, wanted, lambda: True)
    monkeypatch.undo()
    chunk = chunk_of(next(column for column in _columns(path) if column.path_in_schema == "queue"))
    damaged = bytearray(path.read_bytes())
    damaged[chunk.begin + chunk.size - 1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(FAULTS):
        Pages().verify(str(path), 1, wanted, lambda: True)
