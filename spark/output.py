"""Writes what a job gives: Parquet tables, and JSON beside them for the console."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.errors import AnalysisError
from spark.job import Job, Table
from spark.ledger.files import place


def write_tables(spark: SparkSession, job: Job, tables: Mapping[str, DataFrame], out: str) -> dict[str, list[Any]]:
    """Writes each table to <out>/<job>/<table>.parquet, and its first rows to <table>.json; gives these rows.

    What was there before is replaced.
    """
    if missing := job.outputs.keys() ^ tables.keys():
        raise AnalysisError(f"{job.name} gives other tables than it says: {', '.join(sorted(missing))}")
    return {
        name: _write(spark, job.outputs[name], table, f"{_base(out)}/{job.name}/{name}")
        for name, table in tables.items()
    }


def write_summary(job: Job, summary: Mapping[str, Any], out: str) -> None:
    """Writes <out>/<job>/summary.json: what was read, what was not, how long it took."""
    _write_json(f"{_base(out)}/{job.name}/summary.json", summary)


def _base(out: str) -> str:
    return out.rstrip("/") if "://" in out else str(Path(out).absolute())


def _write(spark: SparkSession, table: Table, frame: DataFrame, path: str) -> list[Any]:
    ordered = frame.select(*(F.col(field.name).cast(field.dataType) for field in table.schema))
    ordered.write.mode("overwrite").parquet(f"{path}.parquet")
    written = spark.read.schema(table.schema).parquet(f"{path}.parquet")
    first = (written.orderBy(*_order(table)) if table.order else written).limit(table.console_rows)
    rows = [row.asDict(recursive=True) for row in first.collect()]
    _write_json(f"{path}.json", rows)
    return rows


def _order(table: Table) -> list[Column]:
    return [F.col(name[1:]).desc() if name.startswith("-") else F.col(name) for name in table.order]


def _write_json(path: str, value: object) -> None:
    folder, _, name = path.rpartition("/")
    there = place(folder)
    there.system.create_dir(there.path, recursive=True)
    written = f"{there.path}/.{name}"
    with there.system.open_output_stream(written) as file:
        file.write(json.dumps(value, default=_plain, ensure_ascii=False, indent=1).encode())
    there.system.move(written, f"{there.path}/{name}")  # whoever looks sees all of it, old or new


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
