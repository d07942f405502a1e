"""The audit on Spark, and by DuckDB on the same files."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.analytics.process import Failed, Took, run
from spark.generate.files import write
from spark.generate.plan import Plan

_HERE = Path(__file__).parent
_ACCOUNT = ("virtual_host", "queue", "origin", "fate", "reason", "duplicate")
_MEMORY = "8GB"
# Uid by uid an audit needs memory for each message: more slices take less of it, and less time while it lasts.
_ROWS_OF_SLICE = 2_500_000


@dataclass(frozen=True, slots=True)
class Compared:
    """How long both took, and whether those that ended give the true result."""

    rows: int
    spark: Took | Failed
    duckdb: Took | Failed
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
        said = []
        if isinstance(spark, Took):
            said.append(_from_spark(home / "out/audit/fates.json"))
        if isinstance(peer, Took):
            said.append(_from_duckdb(json.loads(found.read_text())))
        return Compared(truth.rows, spark, peer, bool(said) and all(one == true for one in said))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def by_duckdb(ledger: str, cores: int) -> list[Any]:
    """The audit by DuckDB: rows of an account and a count of messages."""
    files = f"{ledger}/stages/*/*/*.parquet"
    with duckdb.connect(f"{ledger}/../audit.duckdb") as connection:
        connection.execute(f"SET threads = {cores}; SET memory_limit = '{_MEMORY}'; SET TimeZone = 'UTC'")
        connection.execute(f"SET preserve_insertion_order = false; SET VARIABLE ledger = '{files}'")
        connection.execute((_HERE / "told.sql").read_text())
        return _of_slices(connection)


def _of_slices(connection: duckdb.DuckDBPyConnection) -> list[Any]:
    """Messages are in one slice each: their accounts add up."""
    ((rows,),) = connection.execute("SELECT count(*) FROM read_parquet(getvariable('ledger'))").fetchall()
    slices = max(1, round(rows / _ROWS_OF_SLICE))
    audit, messages = (_HERE / "audit.sql").read_text(), Counter[tuple[str, ...]]()
    for number in range(slices):
        for *account, count in connection.execute(audit, {"slice": number, "slices": slices}).fetchall():
            messages[tuple(account)] += count
    return [(*account, count) for account, count in messages.items()]


def _spark(ledger: str, out: str, cores: int, memory: str) -> list[str]:
    places = ["--ledger", ledger, "--out", out]
    how = ["--master", f"local[{cores}]", "--memory", memory, "--option", "grace=0"]
    return [sys.executable, "-m", "spark", "audit", *places, *how]


def _from_spark(path: Path) -> dict[tuple[str, ...], int]:
    return {tuple(row[name] for name in _ACCOUNT): row["messages"] for row in json.loads(path.read_text())}


def _from_duckdb(rows: list[Any]) -> dict[tuple[str, ...], int]:
    return {tuple(row[:-1]): row[-1] for row in rows}
