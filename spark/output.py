"""Writes what a job gives: Parquet tables, and JSON beside them for the console."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
from pyarrow import fs
from pyarrow.dataset import dataset
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.errors import AnalysisError
from spark.job import Job, Table
from spark.ledger.files import place


def write_tables(job: Job, tables: Mapping[str, DataFrame], out: str) -> dict[str, list[Any]]:
    """Writes each table to <out>/<job>/<table>.parquet, and its first rows to <table>.json; gives these rows.

    What was there before is replaced.
    """
    if missing := job.outputs.keys() ^ tables.keys():
        raise AnalysisError(f"{job.name} gives other tables than it says: {', '.join(sorted(missing))}")
    return {name: _write(job.outputs[name], table, f"{_base(out)}/{job.name}/{name}") for name, table in tables.items()}


def forget_summary(job: Job, out: str) -> None:
    """Removes <out>/<job>/summary.json: without it, what a run that is cut short leaves is not taken for whole."""
    there = place(f"{_base(out)}/{job.name}/summary.json")
    if there.system.get_file_info(there.path).type != fs.FileType.NotFound:
        there.system.delete_file(there.path)


def write_summary(job: Job, summary: Mapping[str, Any], out: str) -> None:
    """Writes <out>/<job>/summary.json: what was read, what was not, how long it took."""
    _write_json(f"{_base(out)}/{job.name}/summary.json", summary)


def _base(out: str) -> str:
    return out.rstrip("/") if "://" in out else str(Path(out).absolute())


def _write(table: Table, frame: DataFrame, path: str) -> list[Any]:
    ordered = frame.select(*(F.col(field.name).cast(field.dataType) for field in table.schema))
    ordered.write.mode("overwrite").parquet(f"{path}.parquet")
    rows = _first(table, f"{path}.parquet")
    _write_json(f"{path}.json", rows)
    return rows


def _first(table: Table, path: str) -> list[Any]:
    """The first rows: by DuckDB, for Spark takes longer to begin than a table takes to be read."""
    there = place(path)
    with duckdb.connect() as connection:
        written = connection.from_arrow(dataset(there.path, filesystem=there.system, format="parquet"))
        first = (written.order(_order(table)) if table.order else written).limit(table.console_rows)
        rows = first.to_arrow_table().to_pylist()
    return [{name: _in_utc(value) for name, value in row.items()} for row in rows]


def _order(table: Table) -> str:
    """What is unknown comes where Spark has it: before all others, or after them where these descend."""
    return ", ".join(
        f'"{name[1:]}" DESC NULLS LAST' if name.startswith("-") else f'"{name}" ASC NULLS FIRST' for name in table.order
    )


def _in_utc(value: object) -> object:
    """Times of UTC, as everything here says them: DuckDB gives them in the zone of this machine."""
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value


def _write_json(path: str, value: object) -> None:
    folder, _, name = path.rpartition("/")
    there = place(folder)
    there.system.create_dir(there.path, recursive=True)
    written = f"{there.path}/.{name}"
    with there.system.open_output_stream(written) as file:
        file.write(json.dumps(value, default=_plain, ensure_ascii=False, indent=1).encode())
    there.system.move(written, f"{there.path}/{name}")  # a reader sees all of it, old or new


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
