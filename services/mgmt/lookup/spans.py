"""Which files of `stages` can speak of a uid, by their footers. Files never change, so each is asked once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_REMEMBERED = 20_000  # files
_ANYTHING = (0, (1 << 63) - 1)

Span = tuple[int, int]


class Spans:
    """Remembers the smallest and the largest uid of each row group.

    Of row groups, not of files: in those there are uids of several origins, and between them lie all others.
    """

    def __init__(self) -> None:
        self._known: dict[str, list[Span]] = {}

    def with_any(self, files: list[str], uids: Sequence[Span] | None) -> list[str]:
        """Those that can have some of `uids`; also those that cannot be read, for whoever reads them will say why.

        All of them where `uids` is None.
        """
        if uids is None:
            return files
        return [path for path in files if any(_meet(span, some) for span in self._spans(path) for some in uids)]

    def _spans(self, path: str) -> list[Span]:
        if (spans := self._known.get(path)) is None:
            try:
                spans = list(_read(pq.read_metadata(path)))
            except (OSError, ValueError, pa.ArrowException):
                return [_ANYTHING]
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[path] = spans
        return spans


def _meet(one: Span, other: Span) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _read(footer: Any) -> Iterator[Span]:  # noqa: ANN401 - pyarrow has no types
    names = footer.schema.names
    first, last = names.index("first_uid"), names.index("last_uid")
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        lowest, highest = group.column(first).statistics, group.column(last).statistics
        known = lowest and highest and lowest.has_min_max and highest.has_min_max
        yield (lowest.min, highest.max) if known else _ANYTHING
