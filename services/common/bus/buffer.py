"""Events that wait to be published, bounded, with an account of those that never will be. Pure."""

from __future__ import annotations

from collections import deque
from typing import Generic, NamedTuple, TypeVar

from services.common.bus.facts import Gap

T = TypeVar("T")


class Batch(NamedTuple, Generic[T]):
    """Items with sequences from `first` on; `gap` is what is missing before them."""

    first: int
    items: list[T]
    gap: Gap | None


class Buffer(Generic[T]):
    """Gives every item a sequence and keeps the newest `capacity`; one batch at a time is taken out of it.

    Items leave in order, whether they are sent or given up, so that what is missing is always one range: from the
    first sequence that was neither delivered nor reported, to the one before the next batch.
    """

    def __init__(self, capacity: int) -> None:
        self._items: deque[T] = deque()
        self._capacity = capacity
        self._next = 1
        self._untold = 1  # the first sequence that was neither delivered nor reported as part of a gap
        self.missed = 0
        """Items that were given up; some of a batch that failed may have arrived all the same."""

    def __len__(self) -> int:
        return len(self._items)

    def append(self, item: T) -> None:
        """Adds the newest item; without room the oldest goes: a follower of a state is better off with the newest."""
        if len(self._items) >= self._capacity:
            self._items.popleft()
            self.missed += 1
        self._items.append(item)
        self._next += 1

    def take(self, most: int) -> Batch[T]:
        """Takes out the oldest items, `most` at most."""
        first = self._next - len(self._items)
        items = [self._items.popleft() for _ in range(min(most, len(self._items)))]
        missing = first - self._untold
        gap = Gap(first=self._untold, last=first - 1, count=missing) if missing else None
        return Batch(first, items, gap)

    def sent(self, batch: Batch[T]) -> None:
        """The batch has arrived, and its gap with it."""
        self._untold = batch.first + len(batch.items)

    def failed(self, batch: Batch[T]) -> None:
        """The batch may have arrived in part; it is not sent again, so that nothing arrives twice."""
        self.missed += len(batch.items)
