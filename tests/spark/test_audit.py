from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark.generate.files import write
from spark.generate.plan import Plan
from spark.registry import job
from spark.run import Result, Sources, run

ACCOUNT = ("virtual_host", "queue", "origin", "fate", "reason", "duplicate")


def audit(spark: SparkSession, folder: Path, **options: str) -> Result:
    return run(
        spark, job("audit"), Sources(str(folder / "ledger"), options={"grace": "0", **options}), str(folder / "out")
    )


def fates(result: Result) -> Counter[tuple[str, ...]]:
    return Counter({tuple(row[name] for name in ACCOUNT): row["messages"] for row in result.tables["fates"]})


@pytest.mark.parametrize("plan", [Plan(rows=200_000, losses=30, duplicates=30), Plan(rows=100_000, batch=1, skew=0.9)])
def test_generated(spark: SparkSession, tmp_path: Path, plan: Plan) -> None:
    """Of a generated ledger the audit finds the true fate of every message: what is planted, and nothing else."""
    truth = write(plan, str(tmp_path / "ledger"))
    result = audit(spark, tmp_path)
    assert fates(result) == Counter({tuple(key): count for key, count in truth.messages.items() if count})
    found = {
        (row["queue"], uid, row["duplicate"] or row["reason"])
        for row in result.tables["suspects"]
        for uid in range(row["first_uid"], row["last_uid"] + 1)
    }
    planted = {(one.queue, uid, one.what) for one in truth.planted for uid in range(one.first_uid, one.last_uid + 1)}
    assert found == planted
