"""/service/timezones, of which Broker-J's console lets a user choose: those of the machine that manages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

_REGIONS: Final = frozenset({
    "Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific",
})  # fmt: skip


def time_zones(now: datetime) -> list[dict[str, Any]]:
    """By id; offsets in minutes, as they are at a moment. It reads a file for each."""
    return list(_of(now))


def _of(now: datetime) -> Iterator[dict[str, Any]]:
    for name in sorted(available_timezones()):
        region, _, city = name.partition("/")
        if region in _REGIONS and city:
            there = now.astimezone(ZoneInfo(name))
            offset = there.utcoffset()
            yield {
                "id": name,
                "name": there.tzname(),
                "offset": int(offset.total_seconds()) // 60 if offset else 0,
                "city": city.replace("_", " "),
                "region": region,
            }
