"""Which files of the ledger there are, by the hour."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

HOUR_US = 3_600_000_000


def hour_of(time_us: int) -> int:
    """Hours since the Unix epoch."""
    return time_us // HOUR_US


def filed_hours(table: Path) -> list[int]:
    """The hours that a table's folder has, newest first; anything else in it is passed over."""
    found = (parsed(date, hour) for date in _names(table) for hour in _names(table / date))
    return sorted((hour for hour in found if hour is not None), reverse=True)


def filed(table: Path, hours: Iterable[int]) -> list[str]:
    """The Parquet files of these hours that are whole."""
    folders = (table / f"{datetime.fromtimestamp(hour * 3600, UTC):date=%Y-%m-%d/hour=%H}" for hour in hours)
    return [f"{folder}/{name}" for folder in folders for name in _names(folder) if name.endswith(".parquet")]


def windows(hours: list[int], size: int) -> Iterator[list[int]]:
    """Hours that are newest first, by spans of `size` hours; one empty window where there are none."""
    if not hours:
        yield []
    for _, window in groupby(hours, lambda hour: (hours[0] - hour) // size):
        yield list(window)


def _names(folder: Path) -> list[str]:
    try:
        # What begins so is being written.
        return [name for name in os.listdir(folder) if not name.startswith((".", "_"))]  # noqa: PTH208 - names are wanted
    except (FileNotFoundError, NotADirectoryError):
        return []


def parsed(date: str, hour: str) -> int | None:
    """The hour that two folders are named for; None where they are not."""
    try:
        begins = datetime.strptime(f"{date}/{hour} +0000", "date=%Y-%m-%d/hour=%H %z")
    except ValueError:
        return None
    return int(begins.timestamp()) // 3600
