"""One thing with all that belongs to it: its fields as lines, then what there are several of as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from services.cli.table import Column, Table, shown
from services.common.printable import printable


def detail_lines(row: Mapping[str, Any], parts: Mapping[str, Sequence[Column]]) -> Iterator[str]:
    """`parts` are the fields that are tables, with their columns; what has no meaning is left out."""
    fields = {name: value for name, value in row.items() if name not in parts and not _is_nothing(value)}
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        yield f"{printable(name):<{width}}  {shown(value)}"
    for name, columns in parts.items():
        if rows := row.get(name):
            yield ""
            yield f"{name.removesuffix('_details').replace('_', ' ')}:"
            yield from (f"  {line}" for line in Table(columns).lines(rows))


def _is_nothing(value: object) -> bool:
    return value is None or value == {}
