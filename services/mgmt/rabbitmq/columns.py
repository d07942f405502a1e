"""Columns of rows: those that are asked for, and the order by one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

_R = TypeVar("_R", bound=Mapping[str, Any])
_Row = dict[str, Any]
_TURN: Final = 200  # rows
_PLACE: Final = ("vhost", "name", "source", "destination", "routing_key", "user", "exchange")


def value_in(column: str, tell: Callable[[_R], _Row], quick: Mapping[str, Callable[[_R], Any]]) -> Callable[[_R], Any]:
    """What a row has in it. `tell` makes of a row what is told of it; `quick` are columns that can be had without."""
    first, *inner = column.split(".")
    own = quick.get(first) or (lambda row: tell(row).get(first))
    return (lambda row: at(own(row), inner)) if inner else own


async def in_order(rows: Iterable[_R], value_of: Callable[[_R], Any], *, descending: bool) -> list[_R]:
    """Numbers before texts, and missing values before both. What rows have may have to be made: in turns."""
    found, values = list(rows), list[Any]()
    for start in range(0, len(found), _TURN):
        values.extend(map(value_of, found[start : start + _TURN]))
        await asyncio.sleep(0)
    # Of thousands, numbers alone, or texts, are sorted in a fraction of the time.
    keys = values if set(map(type, values)) in ({int}, {str}) else list(map(_key, values))
    return [found[place] for place in sorted(range(len(found)), key=keys.__getitem__, reverse=descending)]


async def in_place(rows: Iterable[_R]) -> list[_R]:
    """By virtual host and name, or by what each has instead: where nobody says another order, as in RabbitMQ."""
    found = list(rows)
    for name in reversed([name for name in _PLACE if found and name in found[0]]):
        found.sort(key=lambda row: str(row.get(name, "")))
        await asyncio.sleep(0)
    return found


def _key(value: Any) -> tuple[int, Any]:  # noqa: ANN401 - whatever JSON has
    if isinstance(value, int | float):
        return 1, value
    return (0, "") if value is None else (2, str(value))


def shown(row: _Row, columns: str) -> _Row:
    """Those columns of a row that are asked for, as they are nested."""
    if not columns:
        return row
    found: _Row = {}
    for column in columns.split(","):
        path = column.strip().split(".")
        if (value := at(row, path)) is not None:
            _put(found, path, value)
    return found


def at(row: Any, path: Iterable[str]) -> Any:  # noqa: ANN401 - whatever JSON has
    """What is at a path of names; None where nothing is."""
    for name in path:
        row = row.get(name) if isinstance(row, Mapping) else None
    return row


def _put(row: _Row, path: Sequence[str], value: Any) -> None:  # noqa: ANN401 - whatever JSON has
    for name in path[:-1]:
        row = row.setdefault(name, {})
    row[path[-1]] = value
