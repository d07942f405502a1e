"""A histogram: how many observed values fell into each bucket. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """`buckets` has one more than `bounds`, for values above all of them."""

    __slots__ = ("bounds", "buckets", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.buckets = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Counts one more value."""
        self.buckets[bisect_left(self.bounds, value)] += 1
        self.total += value

    def copy(self) -> Histogram:
        """A copy of its present state."""
        found = Histogram(self.bounds)
        found.buckets, found.total = list(self.buckets), self.total
        return found

    @property
    def count(self) -> int:
        """The number of observed values."""
        return sum(self.buckets)
