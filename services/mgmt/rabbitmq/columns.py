"""Columns of rows: those that are asked for, and the order by one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from services.mgmt.model.sorting import places
from services.mgmt.model.steps import Steps
from services.mgmt.turns import in_steps

_R = TypeVar("_R", bound=Mapping[str, Any])
_Row = dict[str, Any]
_AT_ONCE: Final = 50
"""Rows of which a value is made in a step."""
_PLACE: Final = ("vhost", "name", "source", "destination", "routing_key", "user", "exchange")


def value_in(column: str, tell: Callable[[_R], _Row], quick: Mapping[str, Callable[[_R], Any]]) -> Callable[[_R], Any]:
    """What a row has in it. `tell` makes of a row what is told of it; `quick` are columns that can be had without."""
    first, *inner = column.split(".")
    own = quick.get(first) or (lambda row: tell(row).get(first))
    return (lambda row: at(own(row), inner)) if inner else own


async def in_order(rows: Iterable[_R], value_of: Callable[[_R], Any], *, descending: bool) -> list[_R]:
    """Numbers before texts; what is missing is 0, as in RabbitMQ. What rows have may have to be made: in turns."""
    return await in_steps(_ordered(list(rows), value_of, descending=descending))


def _ordered(found: list[_R], value_of: Callable[[_R], Any], *, descending: bool) -> Steps[list[_R]]:
    values = list[Any]()
    for row in found:
        value = value_of(row)
        values.append(0 if value is None else value)
        if not len(values) % _AT_ONCE:
            yield
    return [found[place] for place in (yield from places(values, descending=descending))]


async def in_place(rows: Iterable[_R]) -> list[_R]:
    """By virtual host and name, or by what each has instead: where nobody says another order, as in RabbitMQ."""
    return await in_steps(placed(list(rows)))


def placed(found: list[_R]) -> Steps[list[_R]]:
    """The same in steps."""
    for name in reversed([name for name in _PLACE if found and name in found[0]]):
        values = [str(row.get(name, "")) for row in found]
        yield
        found = [found[place] for place in (yield from places(values))]
    return found


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
