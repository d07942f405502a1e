"""Functions of expressions: a table. Times are milliseconds since the Unix epoch, as attributes have them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from services.mgmt.model.faults import IllegalConfiguration

_DURATION: Final = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<days>[+-]?\d+)D)?"
    r"(?:T(?:(?P<hours>[+-]?\d+)H)?(?:(?P<minutes>[+-]?\d+)M)?(?:(?P<seconds>[+-]?\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)
_MS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}
_LONGEST_TEXT: Final = 1 << 14  # of each of thousands of objects
_LONGEST_DURATION: Final = 10_000 * 366 * _MS["days"]


class Function(NamedTuple):
    """`least` to `most` arguments."""

    least: int
    most: int
    call: Callable[..., Any]


def concat(*parts: object) -> str:
    """All, as texts."""
    text = "".join(map(to_string, parts))
    if len(text) > _LONGEST_TEXT:
        raise IllegalConfiguration(f"concat: a text of more than {_LONGEST_TEXT} characters")
    return text


def to_string(value: object) -> str:
    """As JSON would have it; nothing for what has no value."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def to_date(text: object) -> int:
    """Of ISO 8601; UTC unless it says otherwise."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        raise IllegalConfiguration(f"to_date: a time of ISO 8601 is wanted, not {text!r}") from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def date_add(moment: object, duration: object) -> int:
    """A time, and a duration of ISO 8601 such as PT10M or -P1D."""
    match = _DURATION.fullmatch(str(duration))
    if match is None or not isinstance(moment, int) or isinstance(moment, bool):
        raise IllegalConfiguration(f"date_add: a time and a duration such as -PT10M are wanted, not {duration!r}")
    ms = sum(float(match[unit]) * factor for unit, factor in _MS.items() if match[unit])
    if not abs(ms) <= _LONGEST_DURATION:  # which is not so of what is no number, as infinite days less infinite hours
        raise IllegalConfiguration("date_add: a duration of no more than ten thousand years is wanted")
    return moment + round(-ms if match["sign"] == "-" else ms)


FUNCTIONS: Final[Mapping[str, Function]] = {
    "concat": Function(1, 100, concat),
    "to_string": Function(1, 1, to_string),
    "to_date": Function(1, 1, to_date),
    "date_add": Function(2, 2, date_add),
}
