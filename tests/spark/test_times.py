"""Times of the command line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from spark.errors import AnalysisError
from spark.times import time_of

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
BEYOND = ("9999-12-31T23:59-01:00", "0001-01-01T00:00+01:00")  # in UTC they are in no year that there is


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("90s", NOW - timedelta(seconds=90)),
        ("15m", NOW - timedelta(minutes=15)),
        ("2h", NOW - timedelta(hours=2)),
        ("1d", NOW - timedelta(days=1)),
        ("2026-01-30T08:00", datetime(2026, 1, 30, 8, tzinfo=UTC)),
        ("2026-01-30T08:00+02:00", datetime(2026, 1, 30, 8, tzinfo=timezone(timedelta(hours=2)))),
    ],
)
def test_what_is_said(said: str, meant: datetime) -> None:
    """As `hopline trace` takes them: so long ago, or a date and time."""
    assert time_of(said, NOW) == meant


@pytest.mark.parametrize("said", ["noon", "15", "m", "999999d", "-5m", "nan", "", *BEYOND])
def test_what_is_no_time(said: str) -> None:
    """Is refused, with what would be one."""
    with pytest.raises(AnalysisError, match=r"is no time; 90s, 15m, 2h, 1d \(ago\) or 2026-01-31T12:00 is one"):
        time_of(said, NOW)
