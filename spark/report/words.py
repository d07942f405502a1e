"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

_THOUSANDS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k"))


def count(number: float) -> str:
    """3, 1,234, 12.3 k, 4.56 M."""
    for size, letter in _THOUSANDS:
        if abs(number) >= size:
            scale = 1e3 if letter == "k" else size
            return f"{_digits(number / scale)} {letter}"
    return f"{number:,.0f}" if float(number).is_integer() else _digits(number)


def _digits(number: float) -> str:
    """The three that matter; more where they stand before the point."""
    return f"{number:.3g}" if abs(number) < 999.5 else f"{number:,.0f}"


def duration(micros: float | None) -> str:
    """µs as 12 µs, 3.4 ms, 5.6 s, 7.8 min, 9.1 h; nothing for None."""
    if micros is None:
        return ""
    for size, unit in ((3.6e9, "h"), (6e7, "min"), (1e6, "s"), (1e3, "ms")):
        if abs(micros) >= size:
            return f"{_digits(micros / size)} {unit}"
    return f"{micros:.0f} µs"


def percent(part: float | None) -> str:
    """0.5 as 50 %."""
    return "" if part is None else f"{100 * part:.3g} %"


def moment(time: str | datetime | None) -> str:
    """A time as 2026-01-31 22:50:07, in UTC."""
    if time is None:
        return ""
    found = time if isinstance(time, datetime) else datetime.fromisoformat(time)
    return found.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")


def queue_of(row: Mapping[str, Any]) -> str:
    """The queue of a row, with its virtual host where that is not the first one: names come again in others."""
    return in_host(row.get("virtual_host"), row["queue"])


def in_host(host: str | None, name: str) -> str:
    """The name of something in a virtual host."""
    return f"{host} {name}" if host and host != "/" else name
