from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark.generate.files import write
from spark.generate.plan import Plan
from spark.registry import job
from spark.run import Sources, run
from tests.support.spark_cluster import environment, running_spark_cluster
from tests.support.stack import wait_until

TABLES = ("verdict", "fates", "suspects")


@pytest.mark.timeout(900)
def test_a_worker_dies(spark: SparkSession, tmp_path: Path) -> None:
    """An audit on a cluster, of which a worker is killed while it works, says what one on one machine says."""
    write(Plan(rows=40_000, skew=0.5), str(tmp_path / "ledger"))
    run(spark, job("audit"), Sources(str(tmp_path / "ledger")), str(tmp_path / "local"))
    with running_spark_cluster(tmp_path) as cluster, (tmp_path / "audit.log").open("wb") as log:
        options = ["--ledger", "ledger", "--out", "out", "--master", cluster.master]
        command = [sys.executable, "-m", "spark", "audit", *options]
        path = {"PYTHONPATH": str(Path.cwd())}
        with subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log, env=environment(tmp_path) | path) as audit:
            wait_until(lambda: cluster.tasks(0) and cluster.tasks(1), 120, "tasks on both workers")
            cluster.kill_worker(0)
            before = cluster.tasks(1)
            assert audit.poll() is None
            assert audit.wait(120) == 0, (tmp_path / "audit.log").read_text()
        assert cluster.tasks(1) > before
    for table in TABLES:
        there, here = (tmp_path / out / "audit" / f"{table}.json" for out in ("out", "local"))
        assert _sorted(there) == _sorted(here)


def _sorted(file: Path) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in json.loads(file.read_text()))
