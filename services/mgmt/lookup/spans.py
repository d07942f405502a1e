"""Which files can speak of a uid, or of a time, by their footers. Files never change, so each is asked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from services.common.uid import SEQUENCE_BITS
from services.mgmt.ledger.footers import column_paths

_REMEMBERED = 20_000  # files
_UNREADABLE = (OSError, ValueError, pa.ArrowException)
_ANYTHING = (0, (1 << 63) - 1)

Span = tuple[int, int]

_T = TypeVar("_T")


class Spans:
    """Remembers which uids each file has: spans of each origin, for between two of them lie all others."""

    def __init__(self) -> None:
        self._known: dict[str, list[Span]] = {}
        self._times: dict[str, Span] = {}

    def with_any(self, files: list[str], uids: Sequence[Span] | None) -> list[str]:
        """Those that can have some of `uids`; also those that cannot be read, for their reader will say why.

        All of them where `uids` is None.
        """
        if uids is None:
            return files
        return [path for path in files if any(_meet(span, some) for span in self._spans(path) for some in uids)]

    def about(self, files: list[str], time_us: Span | None) -> list[str]:
        """Those that have rows of about that time; all of them where it is None."""
        return files if time_us is None else [path for path in files if _meet(self._time(path), time_us)]

    def _spans(self, path: str) -> list[Span]:
        return self._remembered(self._known, path, _spans_of, [_ANYTHING])

    def _time(self, path: str) -> Span:
        return self._remembered(self._times, path, _time_of, _ANYTHING)

    def _remembered(self, known: dict[str, _T], path: str, read: Callable[[str], _T], unknown: _T) -> _T:
        if (found := known.get(path)) is None:
            try:
                found = read(path)
            except _UNREADABLE:
                return unknown
            if len(known) >= _REMEMBERED:
                known.clear()
            known[path] = found
        return found


def _meet(one: Span, other: Span) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _spans_of(path: str) -> list[Span]:
    with pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True) as file:
        groups = range(file.metadata.num_row_groups)
        return [span for group in groups for span in _spans_of_group(file, group)]


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
    footer = pq.read_metadata(path)
    told = [_statistics(footer, number, "time") for number in range(footer.num_row_groups)]
    spans = [span for span in told if span]
    return (min(begin for begin, _ in spans), max(end for _, end in spans)) if spans and all(told) else _ANYTHING


def _statistics(footer: Any, group: int, name: str) -> Span | None:  # noqa: ANN401 - pyarrow has no types
    """The smallest and the greatest number of a column."""
    found = footer.row_group(group).column(column_paths(footer).index(name)).statistics
    return (found.min_raw, found.max_raw) if found and found.has_min_max else None
