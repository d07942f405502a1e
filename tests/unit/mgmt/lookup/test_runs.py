"""Which uids row groups have: a look-up passes over files that have others only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.mgmt.lookup.database import Database, Row
from services.mgmt.lookup.runs import Runs
from services.mgmt.lookup.search import Search
from services.mgmt.lookup.spans import Spans
from services.mgmt.lookup.versions import Version, version_of
from tests.support.ledger_files import HOUR, LedgerFiles, uid


def _file(folder: Path, spans: list[tuple[int | None, int | None]], group: int = 100) -> tuple[str, Version]:
    folder.mkdir(exist_ok=True)
    path = str(folder / "a.parquet")
    firsts, lasts = zip(*spans, strict=True)
    times = pa.array([1_000_000] * len(spans), pa.timestamp("us", "UTC"))
    table = pa.table(
        {"first_uid": pa.array(firsts, pa.int64()), "last_uid": pa.array(lasts, pa.int64()), "time": times}
    )
    pq.write_table(table, path, row_group_size=group, write_page_checksum=True)
    return path, _version(path)


def _version(path: str) -> Version:
    version = version_of(path)
    assert version
    return version


def _goes_on() -> bool:
    return True


def _has(path: str, version: Version, uids: range, groups: tuple[int, ...] = (0,)) -> list[int]:
    runs = Runs()
    return [each for each in uids if runs.have(path, version, groups, each, _goes_on)]


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param([(2, 2), (3, 5), (9, 9), (12, 14)], id="in order"),
        pytest.param([(12, 14), (9, 9), (3, 5), (2, 2)], id="in no order"),
        pytest.param([(2, 5), (3, 3), (4, 4), (9, 9), (9, 9), (12, 13), (14, 14)], id="one within another"),
        pytest.param([(None, None), (2, 5), (9, 9), (None, None), (12, 14)], id="some of nothing"),
    ],
)
def test_runs(tmp_path: Path, spans: list[tuple[int | None, int | None]]) -> None:
    """What rows name is there, and nothing between them."""
    assert _has(*_file(tmp_path, spans), range(16)) == [2, 3, 4, 5, 9, 12, 13, 14]


def test_of_some_row_groups(tmp_path: Path) -> None:
    """Of each row group that is asked for it is told apart; of none, nothing is there."""
    path, version = _file(tmp_path, [(2, 2), (3, 3), (7, 7), (9, 9)], group=2)
    assert _has(path, version, range(12), (0,)) == [2, 3]
    assert _has(path, version, range(12), (0, 1)) == [2, 3, 7, 9]
    assert _has(path, version, range(12), ()) == []


def test_nothing_but_nulls(tmp_path: Path) -> None:
    """A row group of rows that name no uid has none."""
    assert _has(*_file(tmp_path, [(None, None)]), range(3)) == []


def test_read_once(tmp_path: Path) -> None:
    """What was read is remembered, until there would be too much: then it is read again."""
    path, version = _file(tmp_path, [(2, 2), (7, 7)])
    runs, small = Runs(), Runs(most=3)
    assert not runs.have(path, version, [0], 3, _goes_on)
    assert not small.have(path, version, [0], 3, _goes_on)
    other, its = _file(tmp_path / "other", [(2, 2), (7, 7)])
    assert not small.have(other, its, [0], 3, _goes_on)
    Path(path).unlink()
    assert not runs.have(path, version, [0], 3, _goes_on)
    assert small.have(path, version, [0], 3, _goes_on)


def test_not_read(tmp_path: Path) -> None:
    """Where it cannot be read, or somebody gave up, the file may have it: who reads it says why."""
    path, version = _file(tmp_path, [(2, 2), (7, 7)])
    assert Runs().have(path, version, [0], 3, lambda: False)
    data = bytearray(Path(path).read_bytes())
    data[40] ^= 1
    Path(path).write_bytes(data)
    assert Runs().have(path, _version(path), [0], 3, _goes_on)


def test_files_of_one_uid(tmp_path: Path) -> None:
    """A file whose footer spans a uid without having it is passed over; for several uids at a time it is not read."""
    path, _ = _file(tmp_path, [(2, 2), (7, 9)])
    spans = Spans()
    assert [spans.with_any([path], [(each, each)], _goes_on) != [] for each in (1, 2, 5, 7, 8, 10)] == [
        *(False, True, False),
        *(True, True, False),
    ]
    assert spans.with_any([path], [(4, 5)], _goes_on) == [path]


def test_another_file_of_the_name(tmp_path: Path) -> None:
    """What is put in the place of a file, as a damaged one is restored, is asked anew for its uids and its times."""
    path, _ = _file(tmp_path, [(2, 2)])
    spans = Spans()
    assert spans.with_any([path], [(7, 7)], _goes_on) == spans.with_any([path], [(7, 8)], _goes_on) == []
    assert spans.about([path], (5_000_000, 6_000_000)) == []
    backup, _ = _file(tmp_path / "backup", [(2, 2), (7, 9)])
    table = pq.read_table(backup)
    later = pa.array([5_000_000, 5_000_000], pa.timestamp("us", "UTC"))
    pq.write_table(table.set_column(2, "time", later), backup)
    os.replace(backup, path)  # noqa: PTH105 - as a restore does
    assert spans.with_any([path], [(7, 7)], _goes_on) == spans.with_any([path], [(7, 8)], _goes_on) == [path]
    assert spans.about([path], (5_000_000, 6_000_000)) == [path]


def test_files_of_later_hours(ledger: LedgerFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of files in which older messages ended, a look-up opens with DuckDB those in which this one did."""
    for number in range(6):
        ledger.stage("received", uid(number))
    ledger.file()
    for hour, ended in ((1, (0, 5)), (2, (1, 4)), (3, (2, 3))):
        for number in ended:
            ledger.stage("settled", uid(number), at=hour * HOUR, queue="q")
        ledger.file()
    read: list[list[str]] = []
    run = Database._run

    def run_and_note(self: Database, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        read.append(parameters["files_found"])
        return run(self, sql, parameters)

    monkeypatch.setattr(Database, "_run", run_and_note)
    database = Database(ledger.folder)
    database.offer({})
    assert [row.stage for row in Search(database).rows_of(uid(1))] == ["received", "settled"]
    assert [len(files) for files in read] == [2]
