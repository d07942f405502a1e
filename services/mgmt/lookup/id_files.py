"""Finds the rows of an id in files of `ids`: without DuckDB, which takes three times as long to look into many.

Any file may have any id. But files are sorted by it, so that of each there is one row group that can, and its footer
says which: that is remembered. Files never change.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from services.mgmt.ledger.footers import column_paths

_REMEMBERED = 2000  # files
_COLUMNS = ("kind", "first_uid", "last_uid", "time")

Row = tuple[Any, ...]

FAULTS = (OSError, ValueError, KeyError, pa.ArrowException)
"""What damaged files, and such as are not sorted, come to."""


class NotSorted(ValueError):
    """Row groups of a file are in no order of ids, or do not say in which."""


class _Groups(NamedTuple):
    least: list[str]  # of each row group
    greatest: list[str]

    def with_id(self, name: str) -> range:
        """Those that can have it: several have what comes very often."""
        last = bisect_right(self.least, name)
        first = last
        while first and self.greatest[first - 1] >= name:
            first -= 1
        return range(first, last)


class IdFiles:
    """For several threads."""

    def __init__(self) -> None:
        self._known: dict[str, _Groups] = {}

    def rows(self, files: Sequence[str], name: str, most: int, go_on: Callable[[], bool]) -> list[Row]:
        """Kind, first and last uid and time (µs) of the newest rows of the id, `most` of each row group at most; in no
        order. Ends early when `go_on` says no. Raises one of FAULTS.
        """
        return [row for path in files if go_on() for row in self._in_file(path, name, most)]

    def _in_file(self, path: str, name: str, most: int) -> list[Row]:
        known = self._known.get(path)
        if known is not None and not known.with_id(name):
            return []
        with pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True) as file:
            return [row for group in self._groups(path, file).with_id(name) for row in _rows(file, group, name, most)]

    def _groups(self, path: str, file: pq.ParquetFile) -> _Groups:
        if (known := self._known.get(path)) is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[path] = _read(file.metadata)
        return known


def _read(footer: Any) -> _Groups:  # noqa: ANN401 - pyarrow has no types
    paths = column_paths(footer)
    told = [footer.row_group(number).column(paths.index("id")).statistics for number in range(footer.num_row_groups)]
    if not all(statistics and statistics.has_min_max for statistics in told):
        raise NotSorted
    groups = _Groups([one.min for one in told], [one.max for one in told])
    if any(before > after for some in groups for before, after in pairwise(some)):
        raise NotSorted
    return groups


def _rows(file: pq.ParquetFile, group: int, name: str, most: int) -> list[Row]:
    ids = file.read_row_group(group, columns=["id"], use_threads=False)["id"]
    which = pc.indices_nonzero(pc.equal(ids, name))
    return _newest(file.read_row_group(group, columns=_COLUMNS, use_threads=False).take(which), most) if which else []


def rows_of(table: pa.Table, name: str, most: int) -> list[Row]:
    """The newest rows of an id in a table of `ids`."""
    return _newest(table.filter(pc.equal(table["id"], name)).select(_COLUMNS), most)


def _newest(table: pa.Table, most: int) -> list[Row]:
    if len(table) > most:
        table = table.take(
            pc.select_k_unstable(table, k=most, sort_keys=[("time", "descending"), ("last_uid", "descending")])
        )
    columns = [table["kind"], table["first_uid"], table["last_uid"], table["time"].cast(pa.int64())]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))
