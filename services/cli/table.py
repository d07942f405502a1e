"""A table of rows that come in pages: each page is written when it is there.

Columns are as wide as the first page needs; what is longer makes its column wider from there on. A row is one line,
however long.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len

from services.common.printable import printable, printable_json

Row = Mapping[str, Any]

_GAP = "  "


class Column(NamedTuple):
    """What is in it: of a name, or made of the row."""

    heading: str
    value: str | Callable[[Row], object]
    right: bool = False

    def text(self, row: Row) -> str:
        """As a terminal may have it."""
        return shown(self.value(row) if callable(self.value) else _at(row, self.value))


class Table:
    """Written page by page."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._widths = [cell_len(column.heading) for column in columns]
        self._begun = False

    def lines(self, rows: Iterable[Row]) -> Iterator[str]:
        """The headings come before the first page, whatever is in it."""
        cells = [[column.text(row) for column in self._columns] for row in rows]
        for row in cells:
            self._widths = [max(width, cell_len(text)) for width, text in zip(self._widths, row, strict=True)]
        if not self._begun:
            self._begun = True
            yield self._line([column.heading for column in self._columns])
        yield from map(self._line, cells)

    def _line(self, row: list[str]) -> str:
        padded = (
            _padded(text, width, right=column.right)
            for text, width, column in zip(row, self._widths, self._columns, strict=True)
        )
        return _GAP.join(padded).rstrip()


def shown(value: object) -> str:
    """Of a cell: "-" for nothing, words for yes and no, JSON for what is inside of others."""
    if value is None or value in ("", {}, []):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping | list):
        return printable_json(json.dumps(value, ensure_ascii=False))
    return printable(str(value))


def _padded(text: str, width: int, *, right: bool) -> str:
    missing = " " * (width - cell_len(text))
    return missing + text if right else text + missing


def _at(row: Any, path: str) -> object:  # noqa: ANN401 - whatever JSON has
    for name in path.split("."):
        row = row.get(name) if isinstance(row, Mapping) else None
    return row
