"""Columns of rows: those that are asked for, and the order by one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

_R = TypeVar("_R", bound=Mapping[str, Any])
_Row = dict[str, Any]


def value_in(column: str, tell: Callable[[_R], _Row], quick: Mapping[str, Callable[[_R], Any]]) -> Callable[[_R], Any]:
    """What a row has in it. `tell` makes of a row what is told of it; `quick` are columns that can be had without."""
    first, *inner = column.split(".")
    own = quick.get(first) or (lambda row: tell(row).get(first))
    return (lambda row: at(own(row), inner)) if inner else own


def order(column: str, tell: Callable[[_R], _Row], quick: Mapping[str, Callable[[_R], Any]]) -> Callable[[_R], Any]:
    """Numbers before texts, and missing values before both."""
    value_of = value_in(column, tell, quick)

    def key(row: _R) -> tuple[int, Any]:
        value = value_of(row)
        if isinstance(value, int | float):
            return 1, value
        return (0, "") if value is None else (2, str(value))

    return key


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
