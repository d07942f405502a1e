"""Finds the rows of an id in files of `ids`: without DuckDB, which takes three times as long to look into many.

Any file may have any id. But files are sorted by it, so that of each there is one row group that can, and its footer
says which: that is remembered, and where it is. So a file that has not the id is opened once, and then only looked
into. Files never change; one that is put in the place of another, as a damaged one is restored, is asked anew.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from services.mgmt.ledger.footers import column_paths, opened
from services.mgmt.lookup.few_ids import FEW, FewIds
from services.mgmt.lookup.id_pages import that_may_have
from services.mgmt.lookup.page_ends import require_told
from services.mgmt.lookup.raw_pages import Chunk, chunk_of
from services.mgmt.lookup.versions import Remembered, Version, version_of

_REMEMBERED = 2000  # files
_TOGETHER = 16  # row groups
_LEARNT_AT_ONCE = 8  # files, in four milliseconds each
_COLUMNS = ("kind", "first_uid", "last_uid", "time")
_UIDS = ("first_uid", "last_uid")
_CHOOSING = (*_UIDS, "time")  # by them files are chosen that are asked for names
_NAMES = ("kind", "id", *_UIDS)

_ANY_UID = (0, (1 << 63) - 1)

Row = tuple[Any, ...]

FAULTS = (OSError, ValueError, KeyError, pa.ArrowException)
"""What damaged files, and such as are not sorted, come to."""


class NotSorted(ValueError):
    """Row groups of a file are in no order of ids, or do not say in which."""


class _Groups(NamedTuple):
    least: list[str]  # of each row group
    greatest: list[str]
    chunks: list[Chunk]
    rows: int

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
        self._known: Remembered[_Groups] = Remembered(_REMEMBERED)
        self._spans: Remembered[array[int]] = Remembered(_REMEMBERED)
        self._few = FewIds()

    def rows(self, files: Sequence[str], name: str, most: int, go_on: Callable[[], bool]) -> list[Row]:
        """Kind, first and last uid and time (µs) of the newest rows of the id, `most` of each row group at most; in no
        order. Ends early when `go_on` says no. Raises one of FAULTS.
        """
        versions = [(path, version_of(path)) for path in files]
        for path, version in islice(filter(self._is_unknown_and_small, versions), _LEARNT_AT_ONCE):
            self._few.learn(path, version, _ids(path))
        return [row for path, version in versions if go_on() for row in self._in_file(path, version, name, most)]

    def names(self, files: Sequence[str], uids: Collection[int], go_on: Callable[[], bool]) -> list[Row]:
        """Kind, id, first and last uid of all rows that name one of `uids`. Raises one of FAULTS.

        Files are not sorted by them: all of the uids of a row group are read, in a third of the time that DuckDB takes.
        """
        asked = sorted(uids)
        return [row for path in files for row in self._names_in_file(path, asked, go_on)]

    def _names_in_file(self, path: str, asked: Sequence[int], go_on: Callable[[], bool]) -> list[Row]:
        version = version_of(path)
        known = self._spans.of(path, version)
        if known is not None and not _groups_with_any(known, asked):
            return []
        with opened(path, pre_buffer=False) as file:
            if known is None:
                require_told(path, file.metadata, _CHOOSING)
                known = self._spans.learn(path, version, _spans_of(file.metadata))
            groups = _groups_with_any(known, asked)
            # Many together, as each reading takes as long as what it reads.
            some = (groups[place : place + _TOGETHER] for place in range(0, len(groups), _TOGETHER) if go_on())
            with_any = (group for its in some if _that_name(_uids(file, its), asked) for group in its)
            return [row for group in with_any for row in _naming(file, group, asked)]

    def _is_unknown_and_small(self, file: tuple[str, Version | None]) -> bool:
        """Of such files some are learnt at a time: all at once would take a second."""
        path, version = file
        known = self._known.of(path, version) if version else None
        if known is None or known.rows > FEW or self._few.knows(path, version):
            return False
        return self._few.has_room(known.rows)

    def _in_file(self, path: str, version: Version | None, name: str, most: int) -> list[Row]:
        if self._few.lacks(path, version, name):
            return []
        known = self._known.of(path, version)
        if known is not None and not any(that_may_have(path, [known.chunks[one] for one in known.with_id(name)], name)):
            return []
        with opened(path, pre_buffer=False) as file:
            if known is None:
                require_told(path, file.metadata, ("id",))
                known = self._known.learn(path, version, _read(file.metadata))
            return [row for group in known.with_id(name) for row in _rows(file, group, name, most)]


def _groups_with_any(spans: array[int], asked: Sequence[int]) -> list[int]:
    """Row groups that can name one of these, which are sorted."""
    ends = zip(spans[::2], spans[1::2], strict=True)
    return [number for number, (least, greatest) in enumerate(ends) if _has_any(asked, least, greatest)]


def _read(footer: Any) -> _Groups:  # noqa: ANN401 - pyarrow has no types
    paths = column_paths(footer)
    columns = [footer.row_group(number).column(paths.index("id")) for number in range(footer.num_row_groups)]
    told = [column.statistics for column in columns]
    if not all(statistics and statistics.has_min_max for statistics in told):
        raise NotSorted
    groups = _Groups(
        [one.min for one in told], [one.max for one in told], list(map(chunk_of, columns)), footer.num_rows
    )
    if any(before > after for some in (groups.least, groups.greatest) for before, after in pairwise(some)):
        raise NotSorted
    return groups


def _rows(file: pq.ParquetFile, group: int, name: str, most: int) -> list[Row]:
    ids = file.read_row_group(group, columns=["id"], use_threads=False)["id"]
    which = pc.indices_nonzero(pc.equal(ids, name))
    return _newest(file.read_row_group(group, columns=_COLUMNS, use_threads=False).take(which), most) if which else []


def _ids(path: str) -> list[str]:
    with opened(path, pre_buffer=False) as file:
        found: list[str] = file.read(columns=["id"], use_threads=False)["id"].to_pylist()
        return found


def _spans_of(footer: Any) -> array[int]:  # noqa: ANN401 - pyarrow has no types
    """The least and the greatest uid of each row group, one after the other: two numbers take 16 bytes so."""
    places = [column_paths(footer).index(name) for name in _UIDS] if footer.num_row_groups else []
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    return array("q", (end for group in groups for end in _span_of(group, places)))


def _span_of(group: Any, places: Sequence[int]) -> tuple[int, int]:  # noqa: ANN401 - as above
    first, last = (group.column(place).statistics for place in places)
    if not (first and last and first.has_min_max and last.has_min_max):
        return _ANY_UID
    return first.min, last.max


def _uids(file: pq.ParquetFile, groups: Sequence[int]) -> pa.Table:
    return file.read_row_groups(groups, columns=_UIDS, use_threads=False)


def _has_any(asked: Sequence[int], least: int, greatest: int) -> bool:
    """Whether one of these, which are sorted, lies between the two."""
    place = bisect_left(asked, least)
    return place < len(asked) and asked[place] <= greatest


def _naming(file: pq.ParquetFile, group: int, asked: Sequence[int]) -> list[Row]:
    which = _that_name(_uids(file, [group]), asked)
    return _names(file.read_row_group(group, columns=_NAMES, use_threads=False).take(which)) if which else []


def names_of(table: pa.Table, uids: Collection[int]) -> list[Row]:
    """The same of a table of `ids`."""
    rows = pa.array(_that_name(table, sorted(uids)), pa.int64())  # a list of none would have no type
    return _names(table.take(rows))


def _names(rows: pa.Table) -> list[Row]:
    return list(zip(*(rows[name].to_pylist() for name in _NAMES), strict=True))


def _that_name(table: pa.Table, asked: Sequence[int]) -> list[int]:
    """The rows that name one of these, which are sorted. The table is not gone through once for each: of a common
    correlation id there may be ten thousand.
    """
    if not asked:
        return []
    first, last = table["first_uid"], table["last_uid"]
    near = pc.and_(pc.less_equal(first, asked[-1]), pc.greater_equal(last, asked[0]))
    if len(asked) == 1:
        return _numbers(near)
    beginning = pc.and_(near, pc.is_in(first, value_set=pa.array(asked, pa.int64())))
    several = pc.indices_nonzero(pc.and_(near, pc.less(first, last)))
    rows, *ends = (column.to_pylist() for column in (several, first.take(several), last.take(several)))
    over = (row for row, *between in zip(rows, *ends, strict=True) if _has_any(asked, *between))
    return sorted({*_numbers(beginning), *over})


def _numbers(wanted: pa.ChunkedArray) -> list[int]:
    numbers: list[int] = pc.indices_nonzero(wanted).to_pylist()
    return numbers


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
