"""Field tables (0-9-1 section 4.2.5.5) that come at one place: whether they can be read, as one before could.

Sizes, names and types say how a table is built; between these are values, which may be any octets. So a table that has
the same ones at the same places as one that can be read can be read as well: that takes one look at its octets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, Final

from services.common.message.field_table import HOLDING, SIZES, sized
from services.common.message.table_check import check

Range = tuple[int, int]
"""Begin and end."""

_FIXED: Final = {ord(letter): size for letter, size in SIZES.items()}
_HOLDING: Final = frozenset(map(ord, HOLDING))
_TABLE: Final = ord("F")
_MOST_RANGES: Final = 24  # of octets that are looked at: more looks are no better than a check
_IN_VAIN: Final = 4  # looks, before the next table is checked without one …
_WITHOUT: Final = 64  # … and those that are, before one of them is learnt: it costs as much as ten checks


class TablesAlike:
    """Their fields begin and end where those of the first did."""

    __slots__ = ("_fields", "_in_vain", "_octets", "_said", "_without")

    def __init__(self, begin: int, end: int) -> None:
        self._fields = begin, end
        self._octets: Callable[[bytes], Any] | None = None
        self._said: object = None
        self._in_vain = 0
        self._without = 1  # the first may be the only one

    def check(self, data: bytes) -> int:
        """As `table_check.check` does; 0 of what it was enough to look at."""
        if self._octets and self._octets(data) == self._said:
            return 0
        count = check(data, *self._fields)
        self._differed(data)
        return count

    def _differed(self, data: bytes) -> None:
        if self._octets:
            self._in_vain += 1
            if self._in_vain >= _IN_VAIN:
                self._octets = None
        elif self._without:
            self._without -= 1
        else:
            self._learn(data)

    def _learn(self, data: bytes) -> None:
        self._in_vain, self._without = 0, _WITHOUT
        found = built(data, *self._fields)
        if 0 < len(found) <= _MOST_RANGES:
            self._octets = itemgetter(*(slice(*each) for each in found))
            self._said = self._octets(data)


def built(data: bytes, begin: int, end: int) -> list[Range]:
    """Which octets of the fields between two say how a table is built, which has been checked; in ascending order."""
    values = list(_values(data, begin, end, named=True))
    begins, ends = [begin, *(after for _, after in values)], [*(value for value, _ in values), end]
    return [(start, behind) for start, behind in zip(begins, ends, strict=True) if start < behind]


def _values(data: bytes, position: int, end: int, *, named: bool) -> Iterator[Range]:
    """Where the values are that hold no others."""
    while position < end:
        if named:
            position += 1 + data[position]
        letter = data[position]
        position += 1
        value, after = (position, position + _FIXED[letter]) if letter in _FIXED else sized(data, position)
        if letter in _HOLDING:
            yield from _values(data, value, after, named=letter == _TABLE)
        else:
            yield value, after
        position = after
