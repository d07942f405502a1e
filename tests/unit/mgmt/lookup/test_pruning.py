from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ledger.generate import generate, message_id
from services.mgmt.lookup.database import Database, Row
from services.mgmt.lookup.search import Search
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
    database = Database(folder)
    database.offer({})
    return Search(database)


def _size(table: Path) -> int:
    return sum(path.stat().st_size for path in table.rglob("*.parquet"))


def test_stages_of_a_uid(folder: Path, search: Search, read: list[int]) -> None:
    """Of a million rows, a uid's are found by reading the row groups that can have them."""
    assert len(search.rows_of(uid(60_000))) == 8
    assert read[0] < _size(folder / "stages") / 4


def test_uid_of_an_id(folder: Path, search: Search, read: list[int]) -> None:
    """Of all ids, one is found by reading the row groups that can have it."""
    [match] = search.matches(message_id(uid(60_000)), 1, everything=False).found
    assert match.uid == uid(60_000)
    assert read[0] < _size(folder / "ids") / 4


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
