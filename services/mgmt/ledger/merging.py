"""Files of one table become one, a part after the other: what is in memory at once is a part of their rows.

Of a file those row groups are read that may have rows of a part, for each part again. To keep files open would cost
more memory than their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from services.mgmt.heap import give_back
from services.mgmt.ledger import parquet
from services.mgmt.ledger.arrow_errors import as_known_errors
from services.mgmt.ledger.footers import opened
from services.mgmt.ledger.pace import Rest
from services.mgmt.ledger.schema import REPEATED, ROW_GROUP, SORTED_BY, TABLES

_PART = 65_536  # rows: a multiple of every table's row group


class _Group(NamedTuple):
    """Of a row group the least and the greatest key, None if no row has one; and whether some have none."""

    least: pa.Scalar | None
    greatest: pa.Scalar | None
    nulls: bool


class _Source(NamedTuple):
    """A file."""

    path: Path
    groups: list[_Group]


class _Part(NamedTuple):
    """Rows with keys above one bound, up to and with the other; the last part has also those without a key."""

    above: pa.Scalar | None
    up_to: pa.Scalar | None

    def groups_in(self, source: _Source) -> list[int]:
        return [number for number, group in enumerate(source.groups) if self._may_be_in(group)]

    def _may_be_in(self, group: _Group) -> bool:
        if self.up_to is None and group.nulls:
            return True
        if group.least is None or group.greatest is None:
            return False
        begins = self.up_to is None or group.least.as_py() <= self.up_to.as_py()
        return begins and (self.above is None or group.greatest.as_py() > self.above.as_py())

    def of(self, rows: pa.Table, key: str) -> pa.Table:
        if self.above is not None:
            rows = rows.filter(pc.fill_null(pc.greater(rows[key], self.above), fill_value=True))
        return rows if self.up_to is None else rows.filter(pc.less_equal(rows[key], self.up_to))


@as_known_errors()
def merge(paths: Sequence[Path], table: str, target: Path, rest: Rest) -> None:
    """Writes the rows of files of `table` into one, in its order. Raises OSError or ValueError."""
    key, size = SORTED_BY[table], ROW_GROUP[table]
    sources, parts = _divided(paths, key, rest)
    left = _texts(TABLES[table].empty_table())
    with parquet.writing(target, table, rest) as add:
        for part in parts:
            wanted = ((each.path, part.groups_in(each)) for each in sources)
            found = [_texts(part.of(parquet.read(path, table, rest, some), key)) for path, some in wanted if some]
            rows = parquet.in_order(pa.concat_tables([left, *found]).cast(TABLES[table]), table, rest)
            # Row groups are whole, whatever number of rows has the same key as the bound.
            whole = len(rows) if part.up_to is None else len(rows) - len(rows) % size
            add(rows[:whole])
            left = _texts(rows[whole:])
            del found, rows
            give_back()  # of a million rows 50 MB would be kept until the end


def _divided(paths: Sequence[Path], key: str, rest: Rest) -> tuple[list[_Source], list[_Part]]:
    columns, sources = [], []
    for path in paths:
        keys, sizes = _keys(path, key, rest)
        columns.append(keys)
        sources.append(_Source(path, _groups(keys, sizes)))
    bounds = _bounds(pa.chunked_array([chunk for keys in columns for chunk in keys.chunks]), rest)
    return sources, [_Part(*ends) for ends in pairwise([None, *bounds, None])]


def _keys(path: Path, name: str, rest: Rest) -> tuple[pa.ChunkedArray, list[int]]:
    """And how many rows each row group has."""
    with opened(path) as file:
        column = file.read([name], use_threads=False)[name]
        sizes = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
    rest()
    return column, sizes


def _groups(keys: pa.ChunkedArray, sizes: list[int]) -> list[_Group]:
    starts = accumulate(sizes, initial=0)
    return [_group(keys.slice(start, size)) for start, size in zip(starts, sizes, strict=False)]


def _group(keys: pa.ChunkedArray) -> _Group:
    ends, nulls = pc.min_max(keys), bool(keys.null_count)
    return _Group(ends["min"], ends["max"], nulls) if ends["min"].is_valid else _Group(None, None, nulls)


def _bounds(keys: pa.ChunkedArray, rest: Rest) -> Iterator[pa.Scalar]:
    """Keys that divide all rows into parts; rows without one come last."""
    order = pc.sort_indices(keys)
    rest()
    for place in range(_PART, len(keys), _PART):
        bound = keys[order[place].as_py()]
        if bound.is_valid:
            yield bound


def _texts(rows: pa.Table) -> pa.Table:
    """With plain text: a few rows of a file would bring the dictionaries of all."""
    fields = [field.with_type(field.type.value_type) if field.type == REPEATED else field for field in rows.schema]
    return rows.cast(pa.schema(fields))
