"""What values of a column there are: by identity, since what repeats is mostly one object, and comparing costs more."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import TypeVar

_T = TypeVar("_T")


def are_alike(column: Sequence[_T]) -> bool:
    """Whether all are one value, as in most streams: cheap where they are, and where the first and the last differ."""
    first = column[0]
    return first is column[-1] and column.count(first) == len(column)


def total(column: Sequence[Sized]) -> int:
    """The sum of their lengths."""
    if len(column) == 1:  # who sends one at a time waits for it
        return len(column[0])
    return len(column[0]) * len(column) if column and are_alike(column) else sum(map(len, column))


def objects(column: Sequence[_T]) -> dict[int, _T]:
    """The objects, by their ids, in the order in which they come; equal ones may be several."""
    if len(column) == 1 or (column and are_alike(column)):
        return {id(column[0]): column[0]}
    return dict(zip(map(id, column), column, strict=True))
