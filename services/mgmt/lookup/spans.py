"""Which files can speak of a uid, or of a time, by their footers, and by what else was read.

Files never change, so each is asked once; one that is put in the place of another, as a damaged one is restored, is
asked anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from services.common.uid import SEQUENCE_BITS
from services.mgmt.ledger.footers import column_paths, opened
from services.mgmt.lookup.page_ends import require_told
from services.mgmt.lookup.runs import Runs
from services.mgmt.lookup.versions import Remembered, Version, version_of

_REMEMBERED = 20_000  # files
_UNREADABLE = (OSError, ValueError, pa.ArrowException)

Span = tuple[int, int]

_ANYTHING: Span = (0, (1 << 63) - 1)


class _Part(NamedTuple):
    """Uids of one origin that a row group may have."""

    group: int
    span: Span


class Spans:
    """Remembers which uids each file has: spans of each origin, for between two of them lie all others."""

    def __init__(self) -> None:
        self._uids: Remembered[list[_Part]] = Remembered(_REMEMBERED)
        self._times: Remembered[Span] = Remembered(_REMEMBERED)
        self._runs = Runs()

    def with_any(self, files: list[str], uids: Sequence[Span] | None, go_on: Callable[[], bool]) -> list[str]:
        """Those that can have some of `uids`; also those that cannot be read, for their reader will say why.

        All of them where `uids` is None. Where one uid is asked for, and `go_on` does not say no, they have it.
        """
        return files if uids is None else [path for path in files if self._has_any(path, uids, go_on)]

    def about(self, files: list[str], time_us: Span | None) -> list[str]:
        """Those that have rows of about that time; all of them where it is None."""
        return files if time_us is None else [path for path in files if _meet(self._time(path), time_us)]

    def _has_any(self, path: str, uids: Sequence[Span], go_on: Callable[[], bool]) -> bool:
        if (version := version_of(path)) is None:
            return True
        if (parts := self._parts(path, version)) is None:
            return True
        groups = {part.group for part in parts if any(_meet(part.span, some) for some in uids)}
        one = len(uids) == 1 and uids[0][0] == uids[0][1]
        return self._runs.have(path, version, groups, uids[0][0], go_on) if one else bool(groups)

    def _parts(self, path: str, version: Version) -> list[_Part] | None:
        if (found := self._uids.of(path, version)) is None:
            try:
                found = self._uids.learn(path, version, _parts_of(path))
            except _UNREADABLE:
                return None
        return found

    def _time(self, path: str) -> Span:
        version = version_of(path)
        if (found := self._times.of(path, version)) is None:
            try:
                found = self._times.learn(path, version, _time_of(path))
            except _UNREADABLE:
                return _ANYTHING
        return found


def _meet(one: Span, other: Span) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _parts_of(path: str) -> list[_Part]:
    with opened(path, pre_buffer=False) as file:
        require_told(path, file.metadata, ("first_uid", "last_uid"))
        groups = range(file.metadata.num_row_groups)
        return [_Part(group, span) for group in groups for span in _spans_of_group(file, group)]


def _spans_of_group(file: pq.ParquetFile, number: int) -> list[Span]:
    first, last = (_statistics(file.metadata, number, name) for name in ("first_uid", "last_uid"))
    if not (first and last):
        return [_ANYTHING]
    span = first[0], last[1]
    return [span] if span[0] >> SEQUENCE_BITS == span[1] >> SEQUENCE_BITS else _by_origin(file, number)


def _by_origin(file: pq.ParquetFile, number: int) -> list[Span]:
    """Where one origin ends and another begins: there is such a row group in each file, once for each origin."""
    table = file.read_row_group(number, columns=["first_uid", "last_uid"], use_threads=False).drop_null()
    origins = pc.shift_right(table["first_uid"], SEQUENCE_BITS)
    found = (
        table.append_column("origin", origins).group_by("origin").aggregate([("first_uid", "min"), ("last_uid", "max")])
    )
    return list(zip(found["first_uid_min"].to_pylist(), found["last_uid_max"].to_pylist(), strict=True))


def _time_of(path: str) -> Span:
    with opened(path, pre_buffer=False) as file:
        require_told(path, file.metadata, ("time",))
        groups = range(file.metadata.num_row_groups)
        told = [_statistics(file.metadata, number, "time") for number in groups]
    spans = [span for span in told if span]
    return (min(begin for begin, _ in spans), max(end for _, end in spans)) if spans and all(told) else _ANYTHING


def _statistics(footer: Any, group: int, name: str) -> Span | None:  # noqa: ANN401 - pyarrow has no types
    """The smallest and the greatest number of a column."""
    found = footer.row_group(group).column(column_paths(footer).index(name)).statistics
    return (found.min_raw, found.max_raw) if found and found.has_min_max else None
