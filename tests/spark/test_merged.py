"""Files that mgmt puts together while they are followed: their rows are read once, wherever they are."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.ledger.files import files_of
from spark.ledger.read import Reading
from spark.ledger.soundness import GONE, Sound
from spark.registry import job
from spark.run import Sources, run
from spark.stream import batch
from spark.stream.account import Account
from spark.stream.batch import Batch
from spark.stream.follow import follow
from spark.stream.following import Following
from tests.support.ledger_rows import START, file_rows, stage

PARTS = 3
READ_BEFORE = 1  # batch, of a file
SILENT = {"time": START, "service": "queue", "instance": "queue-0", "reason": "silent", "first_row": 9, "last_row": 9}


class Merging:
    """Does it once: when the batch is there."""

    def __init__(self, merge: Callable[[], None]) -> None:
        self._merge = merge
        self.done = False

    def __call__(self, number: int = READ_BEFORE) -> None:
        if number == READ_BEFORE and not self.done:
            self.done = True
            self._merge()


def rows(number: int) -> list[dict[str, Any]]:
    """Of a part, which tells of one message: of a gateway, and of a queue process."""
    uid = number + 1
    return [
        {**stage("received", uid), "row": 2 * uid},
        {**stage("confirmed", uid), "row": 2 * uid + 1},
        *({**stage(name, uid), "row": uid} for name in ("enqueued", "persisted")),
    ]


def parts_in(ledger: Path) -> list[Path]:
    """In the order in which they were filed."""
    found = [file_rows(ledger, "stages", rows(number), f"part-{number}") for number in range(PARTS)]
    for number, path in enumerate(found):
        os.utime(path, (number, number))
    return found


def merge(ledger: Path, parts: Sequence[Path]) -> None:
    """All of them become one."""
    for path in parts:
        path.unlink()
    file_rows(ledger, "stages", [row for number in range(PARTS) for row in rows(number)], "hour-9")


def followed(spark: SparkSession, folder: Path) -> tuple[dict[str, int], list[str]]:
    """How many messages the audit has of each fate, and what was said."""
    said: list[str] = []
    settings = Following(str(folder / "ledger"), str(folder / "out"), str(folder / "checkpoint"), files=1, keep=1e9)
    follow(spark.newSession(), settings, once=True, say=said.append).wait()
    fates = json.loads((folder / "out/audit/fates.json").read_text())
    return {row["fate"] + row["duplicate"]: row["messages"] for row in fates}, said


def test_before_a_batch(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of it are gone: what they had is read where it is now, and nothing twice that was read before."""
    parts = parts_in(tmp_path / "ledger")
    merging = Merging(lambda: merge(tmp_path / "ledger", parts))
    files = Account.files

    def files_when_merged(account: Account, number: int) -> list[str]:
        merging(number)
        return files(account, number)

    monkeypatch.setattr(Account, "files", files_when_merged)
    assert followed(spark, tmp_path) == ({"waiting": PARTS}, [])
    assert merging.done


def test_in_a_batch(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same when it had been seen that they are sound."""
    parts = parts_in(tmp_path / "ledger")
    merging = Merging(lambda: merge(tmp_path / "ledger", parts))
    run_batch = Batch.run

    def run_when_merged(self: Batch, files: Sequence[Sound], gone: Collection[str] = ()) -> None:
        merging(self.number)
        run_batch(self, files, gone)

    monkeypatch.setattr(Batch, "run", run_when_merged)
    assert followed(spark, tmp_path) == ({"waiting": PARTS}, [])
    assert merging.done


def test_gaps(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of gaps that becomes another while it is read is read again."""
    parts_in(tmp_path / "ledger")
    gaps = file_rows(tmp_path / "ledger", "gaps", [{**SILENT, "count": -1, "since": START}], "part-8")
    merging = Merging(lambda: gaps.replace(gaps.with_name("hour-9.parquet")) and None)
    read_table = batch.read_table

    def read_and_merge(*arguments: Any) -> Reading:
        reading = read_table(*arguments)
        merging()
        return reading

    monkeypatch.setattr(batch, "read_table", read_and_merge)
    _, said = followed(spark, tmp_path)
    assert (merging.done, said) == (True, [])


def test_dropped(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is gone, with nothing in its place, is named, and what it may have told is unknown."""
    parts = parts_in(tmp_path / "ledger")
    merging = Merging(parts[READ_BEFORE].unlink)
    run_batch = Batch.run

    def run_when_dropped(self: Batch, files: Sequence[Sound], gone: Collection[str] = ()) -> None:
        merging(self.number)
        run_batch(self, files, gone)

    monkeypatch.setattr(Batch, "run", run_when_dropped)
    fates, said = followed(spark, tmp_path)
    assert said == [f"not read: {parts[READ_BEFORE]}: {GONE}"]
    assert fates == {"unknown": PARTS - 1}


def test_batch_analyses(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They list files again of which one was gone when it was to be looked at."""
    parts = parts_in(tmp_path / "ledger")
    merging = Merging(lambda: merge(tmp_path / "ledger", parts))

    def list_and_merge(*arguments: Any) -> list[str]:
        found = files_of(*arguments)
        merging()
        return found

    monkeypatch.setattr("spark.ledger.read.files_of", list_and_merge)
    result = run(spark, job("audit"), Sources(str(tmp_path / "ledger")), str(tmp_path / "out"))
    [verdict] = result.tables["verdict"]
    assert [(row["fate"], row["messages"]) for row in result.tables["fates"]] == [("waiting", PARTS)]
    assert (verdict["unread"], merging.done) == (0, True)
