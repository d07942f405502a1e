"""Files of one table become one, a part after the other: what is in memory at once is a part of their rows.

A file that has rows of several parts is read for each of them. To keep it open would cost more memory than its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from services.mgmt.ledger import parquet
from services.mgmt.ledger.arrow_errors import as_known_errors
from services.mgmt.ledger.pace import Rest
from services.mgmt.ledger.schema import REPEATED, ROW_GROUP, SORTED_BY, TABLES

_PART = 65_536  # rows: a multiple of every table's row group


class _Source(NamedTuple):
    """A file, and the least and the greatest key in it; None if no row has one."""

    path: Path
    least: pa.Scalar | None
    greatest: pa.Scalar | None


class _Part(NamedTuple):
    """Rows with keys above one bound, up to and with the other; the last part has also those without a key."""

    above: pa.Scalar | None
    up_to: pa.Scalar | None

    def may_be_in(self, source: _Source) -> bool:
        if source.least is None or source.greatest is None:
            return self.up_to is None
        reaches = self.above is None or self.up_to is None or source.greatest.as_py() > self.above.as_py()
        return reaches and (self.up_to is None or source.least.as_py() <= self.up_to.as_py())

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
            found = [
                _texts(part.of(parquet.read(each.path, table, rest), key)) for each in sources if part.may_be_in(each)
            ]
            rows = parquet.in_order(pa.concat_tables([left, *found]).cast(TABLES[table]), table, rest)
            # Row groups are whole, whatever number of rows has the same key as the bound.
            whole = len(rows) if part.up_to is None else len(rows) - len(rows) % size
            add(rows[:whole])
            left = _texts(rows[whole:])


def _divided(paths: Sequence[Path], key: str, rest: Rest) -> tuple[list[_Source], list[_Part]]:
    columns = [_keys(path, key, rest) for path in paths]
    sources = [_Source(path, *_ends(keys)) for path, keys in zip(paths, columns, strict=True)]
    bounds = _bounds(pa.chunked_array([chunk for keys in columns for chunk in keys.chunks]), rest)
    return sources, [_Part(*ends) for ends in pairwise([None, *bounds, None])]


def _keys(path: Path, name: str, rest: Rest) -> pa.ChunkedArray:
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        column = file.read([name], use_threads=False)[name]
    rest()
    return column


def _ends(keys: pa.ChunkedArray) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    ends = pc.min_max(keys)
    return (ends["min"], ends["max"]) if ends["min"].is_valid else (None, None)


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
