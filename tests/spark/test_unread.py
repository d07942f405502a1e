"""Files of the record that cannot be read: what only they tell is unknown, and never passes for well."""

from __future__ import annotations

import io
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from spark.ledger.soundness import Refused
from spark.ledger.unread import unread
from spark.registry import job
from spark.report.heading import heading
from spark.report.results import Found
from spark.run import Sources, run
from spark.shown import show
from spark.terms import Unread, files_to_blame
from tests.support.ledger_rows import file_rows, stage

HOUR = "date=2026-01-31/hour=23"
LATE = 5 * 3600.0
ROWS = [
    *(stage(name, 1, 10) for name in ("received", "routed", "confirmed")),
    stage("enqueued", 1, 6, at=1),
    stage("settled", 1, 2, at=2),
    stage("received", 11),
    stage("received", 12),
    stage("refused", 12, reason="invalid"),
    *(stage(name, 21, 23, at=LATE) for name in ("received", "routed", "confirmed")),
    stage("enqueued", 21, at=LATE),
]
SURE = {"settled": 2, "refused": 1}
ALL = {**SURE, "waiting": 5, "lost": 6, "not_enqueued": 1}
IN_DOUBT = {**SURE, "waiting": 1, "lost": 2, "unknown": 9}


def test_until_when_a_file_may_tell_something() -> None:
    """Until the end of its hour, and an hour more since clocks differ; for ever where its folder names no hour."""
    files = [
        Refused(f"/x/stages/{HOUR}/a.parquet", "unreadable: cut"),
        Refused("/x/stages/a.parquet", "unreadable: cut"),
    ]
    copy = Refused(f"/x/stages/{HOUR}/b.parquet", f"a copy of /x/stages/{HOUR}/a.parquet")
    found, ever = unread("/x/", [*files, copy])
    assert found == (f"stages/{HOUR}/a.parquet", int(datetime(2026, 2, 1, 1, tzinfo=UTC).timestamp() * 1e6))
    assert (ever.name, ever.until > found.until) == ("stages/a.parquet", True)


def test_very_many_files() -> None:
    """Of very many the last are kept: whether any may tell of a moment does not change."""
    kept = files_to_blame(Unread(f"{number}", number) for number in range(1000, 0, -1))
    assert (len(kept), kept[-1].time, kept == sorted(kept)) == (200, 1000, True)


@pytest.mark.parametrize("table", ["stages", "gaps", "ids", "copy"])
def test_what_a_file_may_hide(spark: SparkSession, tmp_path: Path, table: str) -> None:
    """What may have ended, or have been, in a file that cannot be read is unknown, and that file is to blame; in the
    tables, on the console and in the report. What is told elsewhere, or came later, is as it is."""
    ledger, matters = tmp_path / "ledger", table in {"stages", "gaps"}
    good = file_rows(ledger, "stages", ROWS)
    if table == "copy":
        shutil.copy(good, good.with_name("b.parquet"))
    else:
        bad = ledger / table / HOUR / "b.parquet"
        bad.parent.mkdir(parents=True, exist_ok=True)
        bad.write_bytes(good.read_bytes()[:-20])
    result = run(spark, job("audit"), Sources(str(ledger), options={"grace": "0"}), str(tmp_path / "out"))
    fates: Counter[str] = Counter()
    for row in result.tables["fates"]:
        fates[row["fate"]] += row["messages"]
        assert (row["gap"] == f"{table}/{HOUR}/b.parquet, which cannot be read") == (row["fate"] == "unknown")
    assert fates == (IN_DOUBT if matters else ALL)
    [verdict] = result.tables["verdict"]
    said = {name: verdict[name] for name in ("whole", "unread", "gaps", "unknown")}
    assert said == {"whole": not matters, "unread": int(matters), "gaps": 0, "unknown": 9 * matters}
    console = Console(file=io.StringIO(), width=200)
    show("verdict", [verdict], console)
    assert ("no" in console.file.getvalue().split()) == matters  # type: ignore[attr-defined]
    tiles = heading({"audit": Found("audit", result.tables, result.summary)}).tiles
    assert ("good" in {tile.tone for tile in tiles}) != matters


@pytest.mark.parametrize("checksums", [True, False])
def test_bits_that_flipped(spark: SparkSession, tmp_path: Path, checksums: bool) -> None:
    """Damage that can be decoded is found by checksums of pages, whatever it says; and without these where nothing
    can be made of it. The file is passed over, named, and to blame.
    """
    ledger = tmp_path / "ledger"
    good = file_rows(ledger, "stages", ROWS)
    bad = file_rows(ledger, "stages", [stage("settled", 3, 6, at=2)], "b")
    pq.write_table(
        pq.ParquetFile(bad).read(), bad, use_dictionary=False, compression="none", write_page_checksum=checksums
    )
    if checksums:
        _overwrite(bad, "stage", b"settled", b"refused")
    else:
        _overwrite(bad, "uids.list.element.first", (3).to_bytes(8, "little"), (1 << 62).to_bytes(8, "little"))
    result = run(spark, job("audit"), Sources(str(ledger), options={"grace": "0"}), str(tmp_path / "out"))
    refused = result.summary["inputs"]["stages"]["refused"]
    assert [one["path"] for one in refused] == [str(bad)]
    assert good.exists()
    assert {row["gap"] for row in result.tables["fates"] if row["fate"] == "unknown"} == {
        f"stages/{HOUR}/b.parquet, which cannot be read"
    }


def _overwrite(path: Path, column: str, old: bytes, new: bytes) -> None:
    """In the last place: before that are statistics."""
    group, whole = pq.read_metadata(path).row_group(0), bytearray(path.read_bytes())
    [chunk] = [each for each in map(group.column, range(group.num_columns)) if each.path_in_schema == column]
    begin = chunk.data_page_offset
    at = whole.rindex(old, begin, begin + chunk.total_compressed_size)
    whole[at : at + len(old)] = new
    path.write_bytes(whole)
