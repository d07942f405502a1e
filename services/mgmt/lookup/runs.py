"""Which uids a row group has: between the least and the greatest of its footer most may be missing.

Messages that waited for hours end in files of later hours, so that each of these may have, by its footer, any message
of the hours before. A row group that may have a uid is read once, and what it has is remembered.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection

import pyarrow as pa
import pyarrow.compute as pc

from services.mgmt.ledger.footers import opened
from services.mgmt.lookup.counted import Counted
from services.mgmt.lookup.versions import Version

_REMEMBERED = 20_000  # files
_MOST = 1_000_000  # numbers, of 8 bytes
_UNREADABLE = (OSError, ValueError, KeyError, pa.ArrowException)
_UIDS = ["first_uid", "last_uid"]

_Ends = array  # the first and the last uid of each run, one run after the other


class Runs:
    """For several threads."""

    def __init__(self, most: int = _MOST) -> None:
        """`most` numbers are remembered, two for each run."""
        self._known: Counted[dict[int, _Ends[int]]] = Counted(most, _REMEMBERED)

    def have(self, path: str, version: Version, groups: Collection[int], uid: int, go_on: Callable[[], bool]) -> bool:
        """Whether one of these row groups of the file has it; also where that cannot be read, or `go_on` says no."""
        known = self._known.of(path, version) or {}
        if missing := [group for group in groups if group not in known]:
            if not go_on():
                return True
            try:
                known = known | _read(path, missing)  # another one: several threads may learn of a file at once
            except _UNREADABLE:
                return True  # who reads it says why
            self._known.learn_instead(path, version, known, sum(map(len, known.values())))
        return any(_is_in(known[group], uid) for group in groups)


def _is_in(ends: _Ends[int], uid: int) -> bool:
    place = bisect_right(ends, uid)
    return place % 2 == 1 or (place > 0 and ends[place - 1] == uid)


def _read(path: str, groups: Collection[int]) -> dict[int, _Ends[int]]:
    with opened(path, pre_buffer=False) as file:
        return {group: _runs(file.read_row_group(group, columns=_UIDS, use_threads=False)) for group in groups}


def _runs(rows: pa.Table) -> _Ends[int]:
    """Rows are sorted by their first uid, or else sorted here."""
    rows = rows.drop_null().combine_chunks()
    if not len(rows):
        return array("q")
    first, last = (rows[name].chunk(0) for name in _UIDS)
    if not pc.all(pc.less_equal(first[:-1], first[1:])).as_py():
        order = pc.sort_indices(first)
        first, last = first.take(order), last.take(order)
    reach = pc.cumulative_max(last)
    gaps = pc.indices_nonzero(pc.greater(pc.subtract(first[1:], reach[:-1]), 1))
    begins = [first[0].as_py(), *first[1:].take(gaps).to_pylist()]
    ends = [*reach.take(gaps).to_pylist(), reach[-1].as_py()]
    return array("q", (end for run in zip(begins, ends, strict=True) for end in run))
