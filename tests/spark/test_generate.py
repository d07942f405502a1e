from __future__ import annotations

import io
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
from rich.console import Console

from spark.generate.files import write
from spark.generate.plan import Plan
from spark.progress import steps


def test_ids(tmp_path: Path) -> None:
    """Where ids are wanted, each message that was received has one of its own, in files sorted by id."""
    write(Plan(rows=3000, ids=True), str(tmp_path))
    with duckdb.connect() as connection:
        ids = connection.execute(
            f"select id, kind, first_uid, last_uid, time from read_parquet('{tmp_path}/ids/**/*.parquet')"
        ).fetchall()
        received = connection.execute(
            "select unnest(range(one.first, one.last + 1)), time from"
            f" (select unnest(uids) as one, time from read_parquet('{tmp_path}/stages/**/*.parquet')"
            " where stage = 'received')"
        ).fetchall()
    assert ids
    assert [row[0] for row in ids] == sorted(row[0] for row in ids)
    assert {(row[2], row[4]) for row in ids} == set(received)
    assert all(row[:2] == (f"message-{row[2]}", "message_id") and row[2] == row[3] for row in ids)


def test_row_groups(tmp_path: Path) -> None:
    """Files are of row groups as small as those of services: so much is read to find a message at least."""
    write(Plan(rows=90_000, ids=True), str(tmp_path))
    for table, most in (("stages", 65_536), ("ids", 8192)):
        [path, *_] = sorted(tmp_path.glob(f"{table}/**/*.parquet"))
        footer = pq.read_metadata(path)
        assert footer.num_row_groups > 1
        assert footer.row_group(0).num_rows == most


def test_no_ids(tmp_path: Path) -> None:
    """Else there are none: analyses do without."""
    write(Plan(rows=3000), str(tmp_path))
    assert not list(tmp_path.glob("ids/**/*.parquet"))


def test_how_far_it_is(tmp_path: Path) -> None:
    """It says after each file how many batches are done; a terminal shows it, and nothing else is written to."""
    told: list[int] = []
    plan = Plan(rows=9000, batches_of_file=400)
    write(plan, str(tmp_path), done=told.append)
    assert told == [400, 800, plan.batches]
    for terminal in (True, False):
        console = Console(file=io.StringIO(), force_terminal=terminal)
        with steps("batches", 10, console) as done:
            done(7)
        assert ("7/10" in console.file.getvalue()) == terminal  # type: ignore[attr-defined]
