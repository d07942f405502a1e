"""The current epoch of every lease, as writes see it: changed only in the order of commits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class FenceLike(Protocol):
    """A hopline.store.Fence."""

    @property
    def lease(self) -> str: ...
    @property
    def epoch(self) -> int: ...


class Epochs:
    """A write is valid when it names the lease's current epoch; a lease that was never acquired is at 0."""

    def __init__(self) -> None:
        self._current: dict[str, int] = {}

    def __getitem__(self, lease: str) -> int:
        return self._current.get(lease, 0)

    def restore(self, lease: str, epoch: int) -> None:
        """Takes over an epoch from disk at the start."""
        self._current[lease] = epoch

    def advance(self, lease: str, above: int = 0) -> int:
        """A new holder's epoch, above `above`, which it knows of; from here on the former one's writes are refused."""
        self._current[lease] = epoch = max(self[lease], above) + 1
        return epoch

    def refused(self, fences: Iterable[FenceLike]) -> list[str]:
        """The leases of `fences` whose epoch is not the current one."""
        current = self._current
        return [fence.lease for fence in fences if current.get(fence.lease, 0) != fence.epoch]
