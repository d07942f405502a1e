"""The audit on Spark, and by DuckDB on the same files."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.analytics.process import Took, run
from spark.generate.files import write
from spark.generate.plan import Plan

SQL = Path(__file__).with_name("audit.sql")
_ACCOUNT = ("virtual_host", "queue", "origin", "fate", "reason", "duplicate")
_MEMORY = "8GB"


@dataclass(frozen=True, slots=True)
class Compared:
    """What both took, and whether they say the same, which is what is true."""

    rows: int
    spark: Took
    duckdb: Took
    agree: bool


def compare(rows: int, batch: float, skew: float, cores: int, memory: str, folder: Path) -> Compared:
    """Generates a ledger, audits it twice, and removes it."""
    home = folder / f"audit-{rows}"
    ledger = str(home / "ledger")
    try:
        truth = write(Plan(rows=rows, batch=batch, skew=skew), ledger)
        spark = run(_spark(ledger, str(home / "out"), cores, memory))
        found = home / "duckdb.json"
        peer = run([sys.executable, "-m", "benchmarks.analytics", "duckdb", ledger, str(cores), str(found)])
        true = {tuple(account): count for account, count in truth.messages.items() if count}
        both = _from_spark(home / "out/audit/fates.json"), _from_duckdb(json.loads(found.read_text()))
        return Compared(truth.rows, spark, peer, all(one == true for one in both))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def by_duckdb(ledger: str, cores: int) -> list[Any]:
    """The audit by DuckDB: rows of an account and a count of messages."""
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {cores}; SET memory_limit = '{_MEMORY}'; SET TimeZone = 'UTC'")
        connection.execute(f"SET temp_directory = '{ledger}/../duckdb'")
        parameters = {"ledger": f"{ledger}/stages/*/*/*.parquet"}
        return connection.execute(SQL.read_text(), parameters).fetchall()


def _spark(ledger: str, out: str, cores: int, memory: str) -> list[str]:
    places = ["--ledger", ledger, "--out", out]
    how = ["--master", f"local[{cores}]", "--memory", memory, "--option", "grace=0"]
    return [sys.executable, "-m", "spark", "audit", *places, *how]


def _from_spark(path: Path) -> dict[tuple[str, ...], int]:
    return {tuple(row[name] for name in _ACCOUNT): row["messages"] for row in json.loads(path.read_text())}


def _from_duckdb(rows: list[Any]) -> dict[tuple[str, ...], int]:
    return {tuple(row[:-1]): row[-1] for row in rows}
