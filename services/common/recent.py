"""What was seen lately, bounded: so that no more is done for something that may never come again until it does."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Final, Generic, TypeVar

MOST: Final = 8192
"""That are known at a time, about: at least half of them, the latest, and what comes together."""


_T = TypeVar("_T", bound=Hashable)


class Recent(Generic[_T]):
    """Of small values."""

    __slots__ = ("_before", "_now")

    def __init__(self) -> None:
        self._now: set[_T] = set()
        self._before: set[_T] = set()

    def again(self, values: Collection[_T]) -> set[_T]:
        """Those of some that were there before; all of them are from now on."""
        found = self._now.intersection(values)
        if self._before:
            found |= self._before.intersection(values)
        if len(self._now) >= MOST // 2:
            self._before, self._now = self._now, set()
        self._now.update(values)
        return found

    def forget(self) -> None:
        """All of them."""
        self._now, self._before = set(), set()
