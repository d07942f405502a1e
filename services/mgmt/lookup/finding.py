"""The newest messages that have something in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from services.common.question import Sought
from services.common.uid import SEQUENCE_BITS
from services.mgmt.lookup.database import Database, Part, Row
from services.mgmt.lookup.descent import published
from services.mgmt.lookup.facets import Facets, Letters
from services.mgmt.lookup.hours import HOUR_US, hour_of
from services.mgmt.lookup.spans import Span

_FIRST, _MORE, _MOST = 1, 4, 24  # hours that are searched together: most questions are about the last one
_EVER = (1 << 63) - 1
_SEVERAL = 4  # rows for each message that is wanted: it may be in as many
_MOST_RANGES = 100_000

_COLUMNS = "epoch_us(time) as time, unnest(uids) as range"
_SPANS = f"select min(range.first), max(range.last) from part_0 group by range.first >> {SEQUENCE_BITS}"  # noqa: S608 - a number


_Window = tuple[list[int], int]


class Wanted(NamedTuple):
    """`letters` where dead letters may be meant."""

    facets: Facets
    letters: Letters | None


class Found(NamedTuple):
    """Uids with the time that was asked for, newest first."""

    uids: dict[int, int]
    more: bool
    cut_short: bool


def find(database: Database, wanted: Wanted, sought: Sought, most: int, expired: Callable[[], bool]) -> Found:
    """At most so many, with all facets of what is sought, or as dead letters of it.

    Stops early when `expired` says so; raises what `Database.ask` does.
    """
    found: dict[int, int] = {}
    for hours, before_us in _windows(database.hours("stages"), sought):
        if expired():
            return Found(_newest(found, most), more=True, cut_short=True)
        window = hours, before_us
        for uid, time_us in _in_window(database, wanted.facets, sought, window, most):
            found[uid] = max(time_us, found.get(uid, 0))
        for uid, time_us in _letters(database, wanted.letters, sought, window, most, expired):
            found[uid] = max(time_us, found.get(uid, 0))
        if len(found) > most:
            break
    late = wanted.letters is not None and expired()
    return Found(_newest(found, most), more=late or len(found) > most, cut_short=late)


def _newest(found: dict[int, int], most: int) -> dict[int, int]:
    ordered = sorted(found.items(), key=lambda one: (one[1], one[0]), reverse=True)
    return dict(ordered[:most])


def _windows(hours: list[int], sought: Sought) -> Iterator[tuple[list[int], int]]:
    """Hours that are searched together, newest first, and before when rows are wanted; none, where none is filed."""
    until_us = sought.until_us or _EVER
    hours = [hour for hour in hours if hour_of(sought.since_us) <= hour <= hour_of(until_us)]
    size = _FIRST
    yield hours[:size], until_us
    while hours := hours[size:]:
        size = min(size * _MORE, _MOST)
        yield hours[:size], min(until_us, (hours[0] + 1) * HOUR_US)


def _letters(
    database: Database, wanted: Letters | None, sought: Sought, window: _Window, most: int, expired: Callable[[], bool]
) -> Iterator[tuple[int, int]]:
    """The newest 100,000 ranges in a window are looked at."""
    if wanted:
        each = _ranges(database, wanted.facets, sought, window, _MOST_RANGES)
        fitting = published(database, wanted, each, expired)
        yield from (one for row in fitting for one in _uids(row, most))


def _in_window(
    database: Database, wanted: Facets, sought: Sought, window: _Window, most: int
) -> Iterator[tuple[int, int]]:
    limit = _SEVERAL * (most + 1)
    while True:
        rows = _ranges(database, wanted, sought, window, limit)
        found = dict(reversed([one for row in rows for one in _uids(row, most)]))
        if len(found) > most or len(rows) < limit or limit >= _MOST_RANGES:
            yield from found.items()
            return
        limit *= _SEVERAL


def _ranges(database: Database, wanted: Facets, sought: Sought, window: _Window, limit: int) -> list[Row]:
    hours, before_us = window
    bounds = "epoch_us(time) >= $since and epoch_us(time) < $before"
    first = Part("stages", _COLUMNS, f"{bounds} and {wanted.conditions[0]}", hours)
    parameters = {**wanted.parameters, "since": sought.since_us, "before": before_us}
    parts = {"part_0": first}
    if len(wanted.conditions) > 1:
        spans = [(row[0], row[1]) for row in database.ask(_SPANS, parts, parameters)]
        if not spans:
            return []
        parts.update(_others(database, wanted, spans))
        parameters.update(lowest=min(span[0] for span in spans), highest=max(span[1] for span in spans))
    return database.ask(_joined(len(parts), limit), parts, parameters)


def _others(database: Database, wanted: Facets, spans: list[Span]) -> dict[str, Part]:
    """The other facets that the same messages must have, at any time."""
    near = "first_uid <= $highest and last_uid >= $lowest"
    hours = database.hours("stages")
    return {
        f"part_{number}": Part("stages", "unnest(uids) as range", f"{near} and {condition}", hours, spans)
        for number, condition in enumerate(wanted.conditions[1:], 1)
    }


def _joined(parts: int, limit: int) -> str:
    others = range(1, parts)
    first = f"greatest({', '.join(f'part_{number}.range.first' for number in range(parts))})"
    last = f"least({', '.join(f'part_{number}.range.last' for number in range(parts))})"
    joins = "".join(
        f" join part_{number} on part_{number}.range.first <= part_0.range.last"
        f" and part_{number}.range.last >= part_0.range.first"
        for number in others
    )
    return (
        f"select first, last, max(time) from (select {first} as first, {last} as last, part_0.time as time"  # noqa: S608 - numbers
        f" from part_0{joins}) where first <= last group by first, last order by 3 desc, 2 desc limit {limit}"
    )


def _uids(row: Row, most: int) -> Iterator[tuple[int, int]]:
    """The newest of a range, which are the last."""
    first, last, time_us = row
    return ((uid, time_us) for uid in range(last, max(first, last - most) - 1, -1))
