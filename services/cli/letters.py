"""Which dead letters were published by somebody, while the ledger is followed: what they were at first, as was told."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TypeVar

_T = TypeVar("_T")

_MOST = 100_000  # messages of each kind
_MOST_STEPS = 100  # back: rows may contradict each other


class Letters:
    """Told of in any order: a process may tell of what came first later than another of what came of it."""

    def __init__(self) -> None:
        self._published: OrderedDict[int, None] = OrderedDict()
        self._before: OrderedDict[int, int] = OrderedDict()
        self._fitting: OrderedDict[int, None] = OrderedDict()

    def publish(self, uids: Iterable[tuple[int, int]]) -> None:
        """These were published by who is wanted."""
        _keep(self._published, dict.fromkeys(_each(uids)))

    def move(self, uids: Iterable[tuple[int, int]], successors: Iterable[int]) -> None:
        """These went on as others, in order."""
        _keep(self._before, dict(zip(successors, _each(uids), strict=False)))

    def route(self, uids: Iterable[tuple[int, int]]) -> None:
        """These are letters that fit otherwise."""
        _keep(self._fitting, dict.fromkeys(_each(uids)))

    def __contains__(self, uid: int) -> bool:
        return uid in self._fitting and self._first(uid) in self._published

    def _first(self, uid: int) -> int:
        for _ in range(_MOST_STEPS):
            if (before := self._before.get(uid)) is None:
                break
            uid = before
        return uid


def _each(uids: Iterable[tuple[int, int]]) -> Iterable[int]:
    return (uid for first, last in uids for uid in range(first, last + 1))


def _keep(kept: OrderedDict[int, _T], more: dict[int, _T]) -> None:
    kept.update(more)
    while len(kept) > _MOST:
        kept.popitem(last=False)
