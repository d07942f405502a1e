from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.ledger.generate import generate, message_id
from services.mgmt.lookup.database import Database, Row
from services.mgmt.lookup.id_files import IdFiles
from services.mgmt.lookup.search import Search
from services.mgmt.lookup.spans import Spans
from tests.support.ledger_files import uid

ROWS = 1_000_000
HOURS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A million rows in some large files, in row groups as small beside the whole as those of a hundred million."""
    place = tmp_path_factory.mktemp("day") / "ledger"
    generate(place, ROWS, hours=HOURS, row_group={"stages": 4096, "ids": 4096}, parts=1)
    return place


@pytest.fixture
def read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes that each query read."""
    found: list[int] = []
    run = Database._run

    def run_and_account(self: Database, sql: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        [[_, plan]] = run(self, f"explain (analyze, format json) {sql}", parameters)
        found.append(json.loads(plan)["io"]["total_bytes_read"])
        return run(self, sql, parameters)

    monkeypatch.setattr(Database, "_run", run_and_account)
    return found


@pytest.fixture
def search(folder: Path) -> Search:
    return _search(folder)


def _search(folder: Path) -> Search:
    reader = Database(folder)
    reader.offer({})
    return Search(reader)


def _size(table: Path) -> int:
    return sum(path.stat().st_size for path in table.rglob("*.parquet"))


def test_stages_of_a_uid(folder: Path, search: Search, read: list[int]) -> None:
    """Of a million rows, a uid's are found by reading the row groups that can have them."""
    assert len(search.rows_of(uid(60_000))) == 8
    assert read[0] < _size(folder / "stages") / 4


def test_uid_of_an_id(folder: Path, search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all ids, one is found by reading of each file the row group that can have it."""
    groups: list[int] = []
    read = pq.ParquetFile.read_row_group

    def read_and_note(self: pq.ParquetFile, group: int, **more: Any) -> pa.Table:
        groups.append(group)
        return read(self, group, **more)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", read_and_note)
    [match] = search.matches(message_id(uid(60_000)), 1, everything=False).found
    assert match.uid == uid(60_000)
    files = len(list((folder / "ids").rglob("*.parquet")))
    assert len(groups) == files + 1  # once more what else the row says


def test_names_of_a_message(folder: Path, search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a message is called is read from the files of when it was received."""
    read: list[str] = []

    names = IdFiles.names

    def note(known: IdFiles, files: list[str], *others: Any) -> list[Row]:
        read.extend(files)
        return names(known, files, *others)

    monkeypatch.setattr(IdFiles, "names", note)
    [match] = search.matches(message_id(uid(60_000)), 1, everything=False).found
    assert match.time_us
    assert [name.id for name in search.names({match.uid: match.time_us})[match.uid]] == [message_id(uid(60_000))]
    assert read
    assert sum(Path(path).stat().st_size for path in read) < _size(folder / "ids") / 2


def _goes_on() -> bool:
    return True


def test_files_of_a_uid(tmp_path: Path) -> None:
    """A file that has messages of two origins is not opened for those of a third, whose numbers are between."""
    path = tmp_path / "a.parquet"
    uids = [origin << 39 | number for origin in (1, 3) for number in range(5)]
    times = pa.array([1_000_000 * number for number in range(10)], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"first_uid": uids, "last_uid": uids, "time": times}), path)
    spans, files = Spans(), [str(path)]
    for uid_there in (uids[3], uids[7]):
        assert spans.with_any(files, [(uid_there, uid_there)], _goes_on) == files
    assert spans.with_any(files, [(2 << 39, 2 << 39)], _goes_on) == []
    assert spans.about(files, (9_000_000, 20_000_000)) == spans.about(files, None) == files
    assert spans.about(files, (9_000_001, 20_000_000)) == []


def test_old_hours(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hours that were over long before a message began are not searched for it."""
    [match] = search.matches(message_id(uid(140_000)), 1, everything=False).found
    searched: list[list[int]] = []
    select = Database.select

    def select_and_note(self: Database, *asked: Any, **more: Any) -> list[Row]:
        searched.append(asked[4])
        return select(self, *asked, **more)

    monkeypatch.setattr(Database, "select", select_and_note)
    assert match.time_us
    assert len(search.rows_of(match.uid, match.time_us)) == 8
    assert searched
    assert all(len(hours) < HOURS for hours in searched)
