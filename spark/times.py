"""Times as people say them on the command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from spark.errors import AnalysisError

_AGO = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def time_of(text: str, now: datetime) -> datetime:
    """From `90s`, `15m`, `2h`, `1d` before `now`, or a date and time of ISO 8601, UTC unless it says otherwise.

    Raises AnalysisError.
    """
    try:
        if ago := _AGO.fullmatch(text):
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return in_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise AnalysisError(f"{text} is no time; 90s, 15m, 2h, 1d (ago) or 2026-01-31T12:00 is one") from None


def in_utc(time: datetime) -> datetime:
    """As a time that names no zone is meant. Raises OverflowError before the first year and after the last."""
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
