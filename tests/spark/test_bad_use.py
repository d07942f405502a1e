from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import cast

import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType
from typer.testing import CliRunner

from spark import room, session
from spark.alone import alone
from spark.cli import app
from spark.errors import AnalysisError
from spark.failure import told_in_a_line
from spark.job import Inputs, Job, Table, column
from spark.registry import job
from spark.run import Sources, run
from tests.support.ledger_rows import damage_column, file_rows, stage
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
    (["report", "--as-of", "noon"], "as-of noon: say now, end, or a time as 2026-01-31T12:00"),
    (["report", "--ledger", "{home}/none"], "no files under {home}/none/stages for the time that is asked for"),
    (["report", "--only", "sums"], "no analysis is called sums; there are "),
    (["report", "--out", NOT_A_FOLDER], f"results cannot be written to {NOT_A_FOLDER}: "),
    (["follow", "--out", NOT_A_FOLDER], f"results cannot be written to {NOT_A_FOLDER}: "),
    (["follow", "--checkpoint", NOT_A_FOLDER], f"results cannot be written to {NOT_A_FOLDER}: "),
    (["generate", NOT_A_FOLDER], f"results cannot be written to {NOT_A_FOLDER}: "),
]


@pytest.mark.parametrize(
    "option",
    [
        ("rows", "0"), ("rows", "1000000000000"), ("batch", "0.5"), ("batch", "nan"), ("batch", "inf"),
        ("batch", "-inf"),
        ("queues", "0"), ("skew", "2"), ("skew", "nan"), ("losses", "-1"), ("gaps", "-1"), ("seed", "-1"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_ledgers_that_cannot_be(tmp_path: Path, option: tuple[str, str]) -> None:
    """Are refused with the option that is to blame, and nothing is made."""
    name, value = option
    ended = CliRunner().invoke(app, ["generate", str(tmp_path / "out"), f"--{name}={value}"])
    assert (ended.exit_code, f"--{name}" in ended.stderr) == (2, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["every", "late", "keep", "grace"])
@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
def test_seconds_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Of a stream are refused, too, before Spark is started."""
    monkeypatch.setattr(session.SparkSession.Builder, "getOrCreate", None)
    out = [f"--{each}={tmp_path}/out" for each in ("out", "checkpoint")]
    ended = CliRunner().invoke(app, ["follow", *out, f"--{name}={value}"])
    assert (ended.exit_code, f"--{name}" in ended.stderr) == (2, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("size", ["nan", "-1g", "0g", "2.5g", "2 g", ""])
def test_heaps_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    """Are refused before Java is asked for them."""
    monkeypatch.setattr(session.SparkSession.Builder, "getOrCreate", None)
    file_rows(tmp_path / "ledger", "stages", [stage("received", 1)])
    given = ["audit", f"--ledger={tmp_path}/ledger", f"--out={tmp_path}/out", f"--memory={size}"]
    ended = CliRunner().invoke(app, given)
    assert (ended.exit_code, "--memory" in ended.stderr) == (2, True)


def test_a_ledger_in_another(tmp_path: Path) -> None:
    """Is not made: the two would be mixed, and what is said to be true of one of them would be false."""
    given = ["generate", str(tmp_path), "--rows", "100", "--seed"]
    assert CliRunner().invoke(app, [*given, "1"]).exit_code == 0
    made = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    ended = CliRunner().invoke(app, [*given, "2"])
    said = f"{tmp_path} has a ledger already: say another folder, or remove it\n"
    assert (ended.exit_code, ended.stdout, ended.stderr) == (1, "", said)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == made


@pytest.mark.parametrize("said", ["", "soon", "nan", "inf", "-1"])
def test_options_that_are_no_numbers(said: str) -> None:
    """Are named, in a line."""
    inputs = Inputs(*[cast("DataFrame", None)] * 3, options={"grace": said})
    with pytest.raises(AnalysisError, match=f"^--option grace={said}: that is no number from 0 on$"):
        inputs.number("grace", 60)


@pytest.mark.parametrize(("name", "option"), [("lag", "window"), ("anomalies", "window"), ("anomalies", "history")])
def test_options_that_are_too_small(name: str, option: str) -> None:
    """Are named, too: windows of no length, or none of them."""
    inputs = Inputs(*[cast("DataFrame", None)] * 3, options={option: "0.5"})
    with pytest.raises(AnalysisError, match=f"^--option {option}=0.5: that is no number from 1 on$"):
        job(name).transform(inputs)


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
        ("An error occurred while calling o1.parquet.\n: java.io.IOException: Connection reset\n\tat x.y(Z)",
         "Spark failed: java.io.IOException: Connection reset"),
        ("", "Spark failed: it does not say why"),
    ],
)  # fmt: skip
def test_spark_fails(text: str, says: str) -> None:
    """Of a page that Spark says when it fails, the line is told that says what happened."""
    with pytest.raises(AnalysisError) as error, told_in_a_line():
        raise Py4JError(text)
    assert str(error.value) == says


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        Py4JError(
            "An error occurred while calling o1.parquet.\n: x.Y: Job aborted\nCaused by: No space left on device"
        ),
    ],
)
def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """A full disk is told as one, and which it is: of results, or of what Spark works on."""
    free = {str(tmp_path / "out"): 0, room.scratch(): 1 << 40}
    monkeypatch.setattr(room, "_free", free.__getitem__)
    with pytest.raises(AnalysisError) as said, told_in_a_line(str(tmp_path / "out")):
        raise error
    assert str(said.value) == f"no space left in {tmp_path}/out; what is there is not whole"


def test_generate_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`generate` says in one line that there is no room; nothing says that the ledger is whole."""

    def no_room(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "Error writing bytes to file")

    monkeypatch.setattr(pq, "write_table", no_room)
    monkeypatch.setattr(room, "_free", lambda _: 0)
    ended = CliRunner().invoke(app, ["generate", str(tmp_path / "ledger"), "--rows", "1000"])
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert ended.stderr == f"no space left in {tmp_path}/ledger; what is there is not whole\n"
    assert not (tmp_path / "ledger/truth.json").exists()


def test_two_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run into a folder to which another one writes is refused in one line, before Spark is started."""
    monkeypatch.setattr(session.SparkSession.Builder, "getOrCreate", None)
    file_rows(tmp_path / "ledger", "stages", [stage("received", 1)])
    given = ["--ledger", f"{tmp_path}/ledger", "--out", f"{tmp_path}/out"]
    with alone(f"{tmp_path}/out", "audit"):
        for command in (["audit"], ["follow", "--checkpoint", f"{tmp_path}/checkpoint"], ["report"]):
            ended = CliRunner().invoke(app, [*command, *given])
            said = f"another run writes to {tmp_path}/out/audit: wait for it, or say another --out\n"
            assert (ended.exit_code, ended.stderr) == (1, said)
    with alone(f"{tmp_path}/out", "audit"):
        pass


def test_damaged_page(spark: SparkSession, tmp_path: Path) -> None:
    """A file that is damaged where its footer does not show it is passed over and named, as one without a footer is."""
    for number in (1, 2, 3):
        file_rows(tmp_path / "ledger", "stages", [stage("received", number)], str(number))
    damaged = [path for path in sorted(tmp_path.rglob("*.parquet")) if path.name in {"1.parquet", "3.parquet"}]
    for path in damaged:
        damage_column(path, "last_uid")
    outputs = {"uids": Table(StructType([column("last_uid", LongType(), "")]))}
    uids = Job("uids", outputs, lambda inputs: {"uids": inputs.stages.select("last_uid")})
    result = run(spark, uids, Sources(str(tmp_path / "ledger")), str(tmp_path / "out"))
    assert [row["last_uid"] for row in result.tables["uids"]] == [2]
    stages = result.summary["inputs"]["stages"]
    assert (stages["files"], [refused["path"] for refused in stages["refused"]]) == (1, list(map(str, damaged)))
    assert all(refused["reason"].startswith("damaged: ") for refused in stages["refused"])


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
        _, said = audit.communicate(timeout=120)
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
