from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType
from typer.testing import CliRunner

from spark import session
from spark.cli import app
from spark.errors import AnalysisError
from spark.failure import told_in_a_line
from spark.job import Job, Table, column
from spark.run import Sources, run
from tests.support.ledger_rows import file_rows, stage
from tests.support.spark_cluster import environment
from tests.support.stack import wait_until

NOT_A_FOLDER = "{home}/ledger/stages/date=2026-01-31/hour=23/rows.parquet"
SAID = [
    (["audit", "--master", "spark://127.0.0.1:1"], "no Spark master answers at spark://127.0.0.1:1: "),
    (["audit", "--master", "spark://nowhere"], "no Spark master answers at spark://nowhere: nowhere is no host:port"),
    (["audit", "--out", NOT_A_FOLDER], f"results cannot be written to {NOT_A_FOLDER}: "),
    (["audit", "--ledger", "{home}/none"], "no files under {home}/none/stages for the time that is asked for"),
    (["audit", "--since", "2027-01-01"], "no files under {home}/ledger/stages for the time that is asked for"),
    (["audit", "--ledger", "ledger://x"], "ledger://x cannot be read: "),
    (["audit", "--option", "grce=1"], "audit knows no option grce (grace: "),
    (["audit", "--option", "grace"], "--option grace: say it as NAME=VALUE"),
    (["audit", "--since", "noon"], "noon is no time; "),
    (["audit", "--as-of", "noon"], "as-of noon: say now, end, or a time as 2026-01-31T12:00"),
    (["lag", "--as-of", "now"], "lag knows no option as-of ("),
    (["report", "--only", "sums"], "no analysis is called sums; there are "),
    (["report", "--out", NOT_A_FOLDER], f"results cannot be written to {NOT_A_FOLDER}: "),
    (["follow", "--out", NOT_A_FOLDER], f"results cannot be written to {NOT_A_FOLDER}: "),
    (["follow", "--checkpoint", NOT_A_FOLDER], f"results cannot be written to {NOT_A_FOLDER}: "),
    (["generate", NOT_A_FOLDER], f"results cannot be written to {NOT_A_FOLDER}: "),
]


@pytest.mark.parametrize(("arguments", "says"), SAID, ids=[" ".join(said[0])[:40] for said in SAID])
def test_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str) -> None:
    """What is wrong with a command is said in one line, before Spark is started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session.SparkSession.Builder, "getOrCreate", None)
    file_rows(tmp_path / "ledger", "stages", [stage("received", 1)])
    ledger = [] if arguments[0] == "generate" else ["--ledger", f"{tmp_path}/ledger"]
    given = [argument.format(home=tmp_path) for argument in arguments]
    ended = CliRunner().invoke(app, [given[0], *ledger, *given[1:]])
    assert ended.exit_code == 1
    assert ended.stderr.startswith(says.format(home=tmp_path))
    assert ended.stderr.count("\n") == 1
    assert not ended.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("An error occurred while calling o1.parquet.\n: java.io.IOException: No space left on device\n\tat x.y(Z)",
         "Spark failed: java.io.IOException: No space left on device"),
        ("", "Spark failed: it does not say why"),
    ],
)  # fmt: skip
def test_spark_fails(text: str, says: str) -> None:
    """Of a page that Spark says when it fails, the line is told that says what happened."""
    with pytest.raises(AnalysisError) as error, told_in_a_line():
        raise Py4JError(text)
    assert str(error.value) == says


def test_cut_short(spark: SparkSession, tmp_path: Path) -> None:
    """A run that fails while it writes leaves no summary, not even an earlier one: it does not pass for whole."""
    file_rows(tmp_path / "ledger", "stages", [stage("received", 1)])

    def count(last: F.Column) -> Job:
        outputs = {"count": Table(StructType([column("last", LongType(), "")]))}
        return Job("count", outputs, lambda inputs: {"count": inputs.stages.select(last.alias("last"))})

    sources, out = Sources(str(tmp_path / "ledger")), tmp_path / "out"
    run(spark, count(F.col("last_uid")), sources, str(out))
    assert (out / "count/summary.json").exists()
    with pytest.raises(AnalysisError, match=r"Spark failed: .*no more"):
        run(spark, count(F.raise_error(F.lit("no more"))), sources, str(out))
    assert not (out / "count/summary.json").exists()


def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C ends an analysis at once, in a line, and its Java with it; nothing passes for whole."""
    file_rows(tmp_path / "ledger", "stages", [stage("received", 1)])
    command = [sys.executable, "-m", "spark", "audit", "--ledger", "ledger", "--out", "out", "--master", "local[1]"]
    settings = environment(tmp_path) | {"PYTHONPATH": str(Path.cwd())}
    with subprocess.Popen(
        command, cwd=tmp_path, env=settings, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as audit:
        wait_until(lambda: list(tmp_path.glob("out/audit/*.parquet")), 60, "results begin to be written")
        os.killpg(audit.pid, signal.SIGINT)  # as a terminal does: Java gets it, too
        _, said = audit.communicate(timeout=30)
    assert audit.returncode == 130
    assert said.splitlines()[-1] == "interrupted"
    assert "Traceback" not in said
    assert not (tmp_path / "out/audit/summary.json").exists()
    wait_until(lambda: not _lives(audit.pid), 15, "no process of it is left")


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
