"""The moment at which a record is judged. No Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spark.as_of import as_of, is_live
from spark.errors import AnalysisError

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "live", "time"),
    [
        ("", True, NOW),
        ("", False, None),
        ("now", False, NOW),
        ("end", True, None),
        ("2026-01-30T10:00", True, datetime(2026, 1, 30, 10, tzinfo=UTC)),
    ],
)
def test_moment(said: str, live: bool, time: datetime | None) -> None:
    """Now for a live record and the last row for files that are not, unless something else is asked for."""
    found = as_of(said, live=live, now=NOW)
    assert found.time == time
    assert found.why


@pytest.mark.parametrize("said", ["yesterday", "9999-12-31T23:59-01:00"])
def test_no_moment(said: str) -> None:
    """What is no time is refused with those that are."""
    with pytest.raises(AnalysisError, match=f"as-of {said}: say now, end, or a time as"):
        as_of(said, live=True, now=NOW)


@pytest.mark.parametrize(
    ("state", "live"),
    [
        (json.dumps({"filed_ms": (NOW - timedelta(seconds=60)).timestamp() * 1000}), True),
        (json.dumps({"filed_ms": (NOW - timedelta(hours=1)).timestamp() * 1000}), False),
        (json.dumps({"instances": {}}), False),  # of an older release
        ("{", False),
        ("[]", False),
        (None, False),
    ],
)
def test_live(tmp_path: Path, state: str | None, live: bool) -> None:
    """A record is live while a mgmt process writes every minute that it files."""
    if state is not None:
        (tmp_path / "_state.json").write_text(state)
    assert is_live(str(tmp_path), NOW) is live
