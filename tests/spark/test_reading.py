from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from services.mgmt.ledger import schema as filed
from spark.errors import AnalysisError, JavaMissing, NothingToRead
from spark.java import java_version, require_java
from spark.job import Inputs, Job, Ranked, Table, column
from spark.ledger.files import files_of, place
from spark.ledger.read import read_stages, read_table
from spark.ledger.soundness import sort_out
from spark.registry import job, names
from spark.run import Sources, run
from spark.schema import TABLES, arrow_schema
from tests.support.ledger_rows import START, file_rows, stage
from tests.support.ledger_schema import plain


@pytest.mark.parametrize("table", sorted(TABLES))
def test_schema(table: str) -> None:
    """Tables are what services file."""
    theirs, ours = plain(filed.TABLES[table]), arrow_schema(TABLES[table])
    assert {field.name: _plain(field.type) for field in theirs} == {field.name: _plain(field.type) for field in ours}


def _plain(kind: pa.DataType) -> str:
    """Whether there may be nulls, and what a list calls its items, is the writer's own business."""
    if pa.types.is_list(kind):
        return f"list of {_plain(kind.value_type)}"
    if pa.types.is_struct(kind):
        return ", ".join(f"{field.name} {field.type}" for field in kind)
    return str(kind)


def test_time_range(spark: SparkSession, tmp_path: Path) -> None:
    """Of a time range only files of its hours are looked at, and only its rows are given."""
    for hours in range(4):
        file_rows(tmp_path, "stages", [stage("received", 10 * hours + n, at=3600 * hours + n) for n in range(3)])
    since, until = START.replace(second=1), datetime(2026, 2, 1, 0, 10, 2, tzinfo=UTC)
    reading = read_stages(spark, str(tmp_path), since, until)
    assert (reading.files, reading.rows) == (2, 6)
    assert sorted(row["first_uid"] for row in reading.table.collect()) == [1, 2, 10, 11]


def test_bad_files(spark: SparkSession, tmp_path: Path) -> None:
    """Files that are truncated, empty, or of another schema are named with the reason; hidden ones are not looked at;
    the rest is read."""
    good = file_rows(tmp_path, "stages", [stage("received", 1)])
    good.with_name("truncated.parquet").write_bytes(good.read_bytes()[:-20])
    good.with_name("empty.parquet").write_bytes(b"")
    good.with_name(".part-7.parquet").write_bytes(b"being written")
    table = pq.ParquetFile(good).read()
    pq.write_table(table.drop_columns(["uids"]), good.with_name("lacks.parquet"))
    epochs = table.set_column(table.column_names.index("epoch"), "epoch", pa.array(["one"]))
    pq.write_table(epochs, good.with_name("other.parquet"))
    pq.write_table(table.append_column("added_later", pa.array([1])), good.with_name("newer.parquet"))
    reading = read_stages(spark, str(tmp_path))
    assert reading.table.count() == reading.rows == reading.files == 2
    reasons = {Path(refused.path).name: refused.reason for refused in reading.refused}
    assert reasons.keys() == {"truncated.parquet", "empty.parquet", "lacks.parquet", "other.parquet"}
    assert reasons["lacks.parquet"] == "wrong schema: no column uids"
    assert reasons["other.parquet"] == "wrong schema: epoch is string, not int64"


def test_copies_of_files(tmp_path: Path) -> None:
    """A file that was copied beside itself is read once, and named; one that only is as large is read too."""
    first = file_rows(tmp_path, "stages", [stage("received", 1)], "a")
    file_rows(tmp_path, "stages", [stage("received", 2)], "b")
    shutil.copy(first, first.with_name("c.parquet"))
    folder = place(str(tmp_path))
    sound, refused = sort_out(folder, files_of(folder, "stages", None, None), arrow_schema(TABLES["stages"]))
    assert [Path(one.path).name for one in sound] == ["a.parquet", "b.parquet"]
    assert [(Path(one.path).name, one.reason) for one in refused] == [("c.parquet", f"a copy of {first}")]


def test_gaps_of_an_older_release(spark: SparkSession, tmp_path: Path) -> None:
    """Files without the columns that came later are read: these are null."""
    gap = {"time": START, "service": "queue", "instance": "queue-0", "reason": "silent", "since": START}
    new = file_rows(tmp_path, "gaps", [gap], "new")
    pq.write_table(pq.ParquetFile(new).read().drop_columns(["since"]), new.with_name("old.parquet"))
    reading = read_table(spark, str(tmp_path), "gaps")
    assert (reading.files, reading.refused) == (2, [])
    assert sorted(row["since"] is None for row in reading.table.collect()) == [False, True]


def test_gaps_that_were_taken_back(spark: SparkSession, tmp_path: Path) -> None:
    """One that was missed and heard again was not dead: of its gaps those stand that are later, or of another kind."""

    def gap(at: int, instance: str, reason: str) -> dict[str, object]:
        return {"time": START + timedelta(seconds=at), "service": "queue", "instance": instance, "reason": reason}

    told = [
        (10, "a", "silent"),
        (20, "a", "given_up"),
        (20, "a", "heard_again"),
        (70, "a", "silent"),
        (5, "b", "silent"),
    ]
    file_rows(tmp_path, "gaps", [gap(*one) for one in told])

    def standing(until: int) -> set[tuple[int, str, str]]:
        table = read_table(spark, str(tmp_path), "gaps", None, START + timedelta(seconds=until)).table
        rows = table.select(F.unix_seconds("time") - int(START.timestamp()), "instance", "reason").collect()
        return {tuple(row) for row in rows}

    assert standing(100) == {(20, "a", "given_up"), (70, "a", "silent"), (5, "b", "silent")}
    assert standing(15) == {(10, "a", "silent"), (5, "b", "silent")}


def test_nothing_to_read(spark: SparkSession, tmp_path: Path) -> None:
    """Without a ledger an analysis says where it looked."""
    with pytest.raises(NothingToRead, match=r"no files under .*nowhere/stages"):
        run(spark, job("audit"), Sources(str(tmp_path / "nowhere")), str(tmp_path / "out"))


def test_files_that_are_merged_meanwhile(spark: SparkSession, tmp_path: Path) -> None:
    """Where files go while they are read, because they are put together, those that replace them are read."""
    part = file_rows(tmp_path / "ledger", "stages", [stage("received", 1, 3)], "part-1")

    def transform(inputs: Inputs) -> dict[str, DataFrame]:
        if part.exists():
            part.rename(part.with_name("hour-2.parquet"))
        return {"count": inputs.stages.agg(F.sum("count").alias("messages"))}

    counting = Job("count", {"count": Table(StructType([column("messages", LongType(), "")]))}, transform)
    result = run(spark, counting, Sources(str(tmp_path / "ledger")), str(tmp_path / "out"))
    assert result.tables["count"] == [{"messages": 3}]


def test_unknown_analysis() -> None:
    """An unknown analysis is refused with the names of those there are."""
    with pytest.raises(AnalysisError, match="no analysis is called sums; there are anomalies, audit"):
        job("sums")


@pytest.mark.parametrize(
    ("option", "says"), [("grce=1", "audit knows no option grce .grace: seconds"), ("grace=long", "no number")]
)
def test_bad_option(spark: SparkSession, tmp_path: Path, option: str, says: str) -> None:
    """An option that there is not, or that makes no sense, is told in a line."""
    file_rows(tmp_path, "stages", [stage("received", 1)])
    sources = Sources(str(tmp_path), options=dict([option.split("=")]))
    with pytest.raises(AnalysisError, match=says):
        run(spark, job("audit"), sources, str(tmp_path / "out"))


@pytest.mark.parametrize("name", sorted(names()))
def test_outputs_are_documented(name: str) -> None:
    """Each analysis is found by its name and says what its tables are and how they are ordered."""
    found = job(name)
    assert found.name == name
    for table in found.outputs.values():
        assert {_named(column) for column in table.order} <= set(table.schema.names)
        assert all("comment" in field.metadata for field in table.schema)


def _named(column: str | Ranked) -> str:
    return column.column if isinstance(column, Ranked) else column.removeprefix("-")


def java(folder: Path, says: str) -> str:
    path = folder / "bin/java"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    path.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("says", "version"), [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "1.8.0_392"', 8)]
)
def test_java_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, version: int) -> None:
    """Java's version is found, in its old way of counting and in its new one."""
    monkeypatch.setenv("JAVA_HOME", java(tmp_path, says))
    assert java_version() == version


def test_java_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that is too old is told in one line that says what to do."""
    monkeypatch.setenv("JAVA_HOME", java(tmp_path, 'openjdk version "11.0.22"'))
    with pytest.raises(JavaMissing, match=r"Spark needs Java 17 or newer, and this is 11 .*apt install") as error:
        require_java()
    assert "\n" not in str(error.value)


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is a machine without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    with pytest.raises(JavaMissing, match="none is found"):
        require_java()
