from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from services.common.errors import InternalError, Unavailable
from services.mgmt.lookup import database
from services.mgmt.lookup.database import Database
from services.mgmt.lookup.hours import filed, filed_hours, hour_of, windows
from services.mgmt.lookup.lookup import LookUp
from tests.support.ledger_files import HOUR, NOON, LedgerFiles, uid


def test_hours(ledger: LedgerFiles) -> None:
    """Hours are found newest first; what is no hour, or begins as what is being written, is passed over."""
    for number in range(3):
        ledger.stage("received", uid(number), at=-number * 13 * HOUR)
    ledger.file()
    table = ledger.folder / "stages"
    for stray in ("date=2026-08-21/hour=99", "date=2026-08-21/_hour=01", "notes", ".date=2026-08-20/hour=01"):
        (table / stray).mkdir(parents=True)
    (table / "README").touch()
    newest = hour_of(NOON)
    assert filed_hours(table) == [newest, newest - 13, newest - 26]
    assert filed_hours(ledger.folder / "none") == []


def test_files_that_are_being_written(ledger: LedgerFiles, look_up: LookUp) -> None:
    """Only whole Parquet files are read."""
    ledger.stage("received", uid(1))
    ledger.file()
    table = ledger.folder / "stages"
    [path] = table.rglob("*.parquet")
    for stray in (".b.parquet", "_c.parquet", "b.parquet.tmp"):
        path.with_name(stray).write_bytes(b"half")
    assert filed(table, [hour_of(NOON)]) == [str(path)]


def test_windows() -> None:
    """Hours come by the span of time that they are in; none make one empty window, for what is not filed."""
    assert list(windows([9, 8, 5, 4, 1], 2)) == [[9, 8], [5, 4], [1]]
    assert list(windows([], 2)) == [[]]


async def test_folder_with_a_pattern_s_name(tmp_path: Path) -> None:
    """A data folder whose name is a pattern is that folder and no other."""
    ledgers = [LedgerFiles(tmp_path / name) for name in ("[ab]*?", "axx")]
    for number, ledger in enumerate(ledgers):
        ledger.stage("received", uid(number))
        ledger.file()
    look_up = LookUp(ledgers[0].folder)
    assert (await look_up.trace(str(uid(0)))).journeys
    assert not (await look_up.trace(str(uid(1)))).journeys
    await look_up.stop()


def _uids(opened: Database) -> list[int]:
    opened.offer({})
    rows = opened.select("stages", "first_uid", "first_uid > 0", {}, opened.hours("stages"))
    return sorted(row[0] for row in rows)


def test_files_are_merged_meanwhile(ledger: LedgerFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that vanish between being listed and being read are looked for again."""
    for name in ("a", "b"):
        ledger.stage("received", uid(ord(name)))
        ledger.file(f"{name}.parquet")
    opened = Database(ledger.folder)
    ledger.stage("received", uid(ord("a")))
    ledger.stage("received", uid(ord("b")))
    listed = []

    def list_then_merge(table: Path, hours: list[int]) -> list[str]:
        files = filed(table, hours)
        if not listed:
            ledger.file("merged.parquet")
            for file in files:
                Path(file).unlink()
        listed.append(files)
        return files

    monkeypatch.setattr(database, "filed", list_then_merge)
    assert _uids(opened) == [uid(ord("a")), uid(ord("b"))]
    assert [len(files) for files in listed] == [2, 1, 1]


def test_files_are_replaced_meanwhile(ledger: LedgerFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """When there is more after the reading than was listed before it, everything is read again."""
    ledger.stage("received", uid(1))
    ledger.file()
    opened = Database(ledger.folder)
    listed = []

    def list_in_between(table: Path, hours: list[int]) -> list[str]:
        listed.append(filed(table, hours))
        return listed[-1] if len(listed) > 1 else []

    monkeypatch.setattr(database, "filed", list_in_between)
    assert _uids(opened) == [uid(1)]


def test_damaged_file(ledger: LedgerFiles) -> None:
    """A file that is no Parquet hides no other."""
    ledger.stage("received", uid(1))
    ledger.file()
    [path] = (ledger.folder / "stages").rglob("*.parquet")
    path.with_name("b.parquet").write_bytes(b"PAR1" + bytes(100))
    path.with_name("c.parquet").write_bytes(b"")
    assert _uids(Database(ledger.folder)) == [uid(1)]


def test_damaged_file_is_restored(ledger: LedgerFiles) -> None:
    """A damaged file that somebody restores is read again, and one that somebody deletes is not named any more."""
    for number in (1, 2):
        ledger.stage("received", uid(number))
        ledger.file(f"{number}.parquet")
    [path] = (ledger.folder / "stages").rglob("2.parquet")
    whole = path.read_bytes()
    opened = Database(ledger.folder)
    found = []
    for content in (whole[: len(whole) // 2], whole, whole[:-8], None):
        path.unlink() if content is None else path.write_bytes(content)
        found.append((_uids(opened), [Path(file).name for file in opened.damaged]))
    assert found == [
        ([uid(1)], ["2.parquet"]),
        ([uid(1), uid(2)], []),
        ([uid(1)], ["2.parquet"]),
        ([uid(1)], []),
    ]


def test_restored_with_its_time(ledger: LedgerFiles) -> None:
    """Also where the restored file has the place, the size and the time of change of the damaged one."""
    ledger.stage("received", uid(1))
    ledger.file()
    [path] = (ledger.folder / "stages").rglob("*.parquet")
    whole, opened, time = path.read_bytes(), Database(ledger.folder), path.stat().st_mtime_ns
    path.write_bytes(bytes(len(whole)))
    os.utime(path, ns=(time, time))
    assert (_uids(opened), len(opened.damaged)) == ([], 1)
    path.write_bytes(whole)
    os.utime(path, ns=(time, time))
    assert (_uids(opened), opened.damaged) == ([uid(1)], [])


@pytest.mark.parametrize("column", ["first_uid", "uids", "stage"])
def test_damaged_page(ledger: LedgerFiles, column: str) -> None:
    """A file that is damaged inside, where its footer does not show it, hides no other, and is named."""
    for number in (1, 2):
        ledger.stage("received", uid(number))
        ledger.file(f"{number}.parquet")
    [path] = (ledger.folder / "stages").rglob("2.parquet")
    [chunk] = [chunk for chunk in _chunks(path) if chunk.path_in_schema.partition(".")[0] == column][:1]
    whole = bytearray(path.read_bytes())
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    whole[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(whole)
    opened = Database(ledger.folder)
    opened.offer({})
    rows = opened.select("stages", "first_uid, uids, stage", "first_uid > 0", {}, opened.hours("stages"))
    assert [row[0] for row in rows] == [uid(1)]
    assert opened.damaged == [str(path.relative_to(ledger.folder))]


def _chunks(path: Path) -> list[Any]:
    group = pq.read_metadata(path).row_group(0)
    return [group.column(number) for number in range(group.num_columns)]


def test_never_to_be_read(ledger: LedgerFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are always gone when they are read are given up."""
    ledger.stage("received", uid(1))
    ledger.file()
    opened = Database(ledger.folder)
    hours = opened.hours("stages")
    monkeypatch.setattr(database, "filed", lambda table, _: [str(table / "gone.parquet")])
    opened.offer({})
    with pytest.raises(Unavailable):
        opened.select("stages", "row", "true", {}, hours)
    shutil.rmtree(ledger.folder)


def test_files_of_another_kind(ledger: LedgerFiles) -> None:
    """Files without the columns that are asked for are an error of ours, and told as one."""
    ledger.stage("received", uid(1))
    ledger.file()
    opened = Database(ledger.folder)
    opened.offer({})
    with pytest.raises(InternalError, match="cannot be asked"):
        opened.select("stages", "colour", "true", {}, opened.hours("stages"))


def test_confined(ledger: LedgerFiles, tmp_path: Path) -> None:
    """DuckDB opens nothing outside the ledger, and its settings stay as they are."""
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    opened = Database(ledger.folder)
    for statement in (
        f"select * from '{secret}'",
        f"copy (select 1) to '{tmp_path}/out.csv'",
        "install httpfs",
        f"attach '{tmp_path}/x.db'",
        "set enable_external_access = true",
        "set memory_limit = '10GB'",
    ):
        with pytest.raises(duckdb.Error):
            opened._connection.execute(statement)
