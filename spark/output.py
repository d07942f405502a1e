"""Writes what a job gives: Parquet tables, and JSON beside them for the console."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any

import duckdb
from pyarrow import fs
from pyarrow.dataset import Dataset, dataset, field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.errors import AnalysisError
from spark.job import Job, Ranked, Table
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
    path = f"{_base(out)}/{job.name}/summary.json"
    if is_written(path):
        there = place(path)
        there.system.delete_file(there.path)


def write_summary(job: Job, summary: Mapping[str, Any], out: str) -> None:
    """Writes <out>/<job>/summary.json: what was read, what was not, how long it took."""
    _write_json(f"{_base(out)}/{job.name}/summary.json", summary)


def _base(out: str) -> str:
    return out.rstrip("/") if "://" in out else str(Path(out).absolute())


def _write(table: Table, frame: DataFrame, path: str) -> list[Any]:
    ordered = frame.select(*(F.col(one.name).cast(one.dataType) for one in table.schema))
    ordered.write.mode("overwrite").parquet(f"{path}.parquet")
    rows = first_rows(f"{path}.parquet", table.order, table.console_rows)
    _write_json(f"{path}.json", rows)
    return rows


def first_rows(path: str, order: Sequence[str | Ranked], most: int, **values: object) -> list[dict[str, Any]]:
    """The first rows of a table in Parquet that have these values, in an order as a `Table` says it.

    By DuckDB, for Spark takes longer to begin than a table takes to be read.
    """
    written = _written(path)
    chosen = [field(name) == value for name, value in values.items()]
    with duckdb.connect() as connection:
        found = connection.from_arrow(written.to_table(filter=reduce(and_, chosen)) if chosen else written)
        first = (found.order(_order(order)) if order else found).limit(most)
        rows = first.to_arrow_table().to_pylist()
    return [{name: _in_utc(value) for name, value in row.items()} for row in rows]


def count_rows(path: str) -> int:
    """Of a table in Parquet."""
    return int(_written(path).count_rows())


def is_written(path: str) -> bool:
    """Whether something is there."""
    there = place(path)
    return bool(there.system.get_file_info(there.path).type != fs.FileType.NotFound)


def _written(path: str) -> Dataset:
    there = place(path)
    return dataset(there.path, filesystem=there.system, format="parquet")


def _order(names: Sequence[str | Ranked]) -> str:
    return ", ".join(_rank(name) if isinstance(name, Ranked) else _by(name) for name in names)


def _rank(ranked: Ranked) -> str:
    cases = " ".join(f"WHEN '{value}' THEN {place}" for place, value in enumerate(ranked.values))
    return f'CASE "{ranked.column}" {cases} ELSE {len(ranked.values)} END'


def _by(name: str) -> str:
    """What is unknown comes where Spark has it: before all others, or after them where these descend."""
    return f'"{name[1:]}" DESC NULLS LAST' if name.startswith("-") else f'"{name}" ASC NULLS FIRST'


def _in_utc(value: object) -> object:
    """Times of UTC, as everything here says them: DuckDB gives them in the zone of this machine."""
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value


def _write_json(path: str, value: object) -> None:
    folder, _, name = path.rpartition("/")
    there = place(folder)
    there.system.create_dir(there.path, recursive=True)
    written = f"{there.path}/.{name}"
    with there.system.open_output_stream(written) as file:
        file.write(json.dumps(value, default=plain, ensure_ascii=False, indent=1).encode())
    there.system.move(written, f"{there.path}/{name}")  # a reader sees all of it, old or new


def plain(value: object) -> str:
    """What JSON has no form of its own for: times as ISO 8601."""
    return value.isoformat() if isinstance(value, datetime) else str(value)
