"""Shows tables on the console, as wide as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_MOST = 40  # rows
_WIDE = 250  # columns of characters, where nobody says how many there are


def show(name: str, rows: Sequence[Mapping[str, Any]], console: Console | None = None) -> None:
    """The first rows of a table; columns in which nothing is said are left out, and one row alone is a list."""
    if not rows:
        return
    console = console or Console()
    if not console.is_terminal:
        console.width = _WIDE
    shown = rows[:_MOST]
    columns = [column for column in rows[0] if any(_cell(row[column]) for row in shown)]
    console.print(_list(name, shown[0], columns) if len(rows) == 1 else _grid(name, shown, columns))
    if len(rows) > _MOST:
        console.print(f"… the first {_MOST} rows; {name}.json has {len(rows):,}, {name}.parquet all")


def _list(name: str, row: Mapping[str, Any], columns: Sequence[str]) -> Table:
    grid = Table(title=name, title_justify="left", show_header=False)
    for column in columns:
        grid.add_row(column, _text(row[column]))
    return grid


def _grid(name: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Table:
    grid = Table(title=name, title_justify="left")
    for column in columns:
        number = isinstance(rows[0][column], (int, float)) and not isinstance(rows[0][column], bool)
        grid.add_column(column, justify="right" if number else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(_text(row[column]) for column in columns))
    return grid


def printable(text: str) -> str:
    """`text` with what a terminal would obey, or not show, as Python writes it."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _text(value: object) -> Text:
    """Of a cell; a bare string would be read for markup, and names come from clients."""
    return Text(printable(_cell(value)))


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:,.3f}"
        case datetime():
            return value.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
        case _:
            return str(value)
