"""Which messages of a batch: ascending indexes, as a range where they follow one another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, Protocol, TypeVar

_T = TypeVar("_T")


class Chosen(Protocol):
    """What QueueMessages and Refusal have in common: `count` from `first` on, or those at `indexes`."""

    first: int
    count: int

    @property
    def indexes(self) -> Sequence[int]: ...


def chosen(wire: Chosen) -> Sequence[int]:
    """The indexes that a message on the wire names."""
    if count := wire.count:
        return range(first := wire.first, first + count)
    return list(wire.indexes)


def choice(indexes: Sequence[int]) -> dict[str, Any]:
    """The fields of a message on the wire that names these."""
    if not indexes or indexes[-1] - indexes[0] == len(indexes) - 1:
        return {"first": indexes[0] if indexes else 0, "count": len(indexes)}
    return {"indexes": indexes}


def condensed(indexes: Sequence[int]) -> Sequence[int]:
    """The same as a range, if they follow one another."""
    if isinstance(indexes, range) or not indexes or indexes[-1] - indexes[0] != len(indexes) - 1:
        return indexes
    return range(indexes[0], indexes[-1] + 1)


def pick(column: Sequence[_T], indexes: Sequence[int]) -> Sequence[_T]:
    """The values of a column at these indexes."""
    if isinstance(indexes, range):
        return column if len(indexes) == len(column) else column[indexes.start : indexes.stop]
    if len(indexes) == 1:
        return column[indexes[0] : indexes[0] + 1]
    return list(itemgetter(*indexes)(column)) if indexes else []


def runs(indexes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges that follow one another in it: the first, and how many."""
    if not indexes:
        return
    if indexes[-1] - indexes[0] == len(indexes) - 1:
        yield indexes[0], len(indexes)
        return
    first = expected = indexes[0]
    for index in indexes:
        if index != expected:
            yield first, expected - first
            first = index
        expected = index + 1
    yield first, expected - first
