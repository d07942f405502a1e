"""What is written for the console and the report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark.output import first_rows


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine that is not in UTC."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
def test_times_are_those_of_utc_on_any_machine(tmp_path: Path) -> None:
    """As the report says, and as --since takes them."""
    moment = datetime(2026, 1, 31, 22, 50, tzinfo=UTC)
    pq.write_table(pa.table({"time": pa.array([moment], pa.timestamp("us", "UTC"))}), tmp_path / "t.parquet")
    [row] = first_rows(str(tmp_path / "t.parquet"), (), 1000)
    assert row["time"].isoformat() == "2026-01-31T22:50:00"
