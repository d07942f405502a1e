"""What was seen lately, bounded: so that no more is done for something that may never come again until it does."""

from __future__ import annotations

from typing import Final

MOST: Final = 8192
"""That are known at a time, at least half of them, the latest."""


class Recent:
    """Of short bytes."""

    __slots__ = ("_before", "_now")

    def __init__(self) -> None:
        self._now: set[bytes] = set()
        self._before: set[bytes] = set()

    def has(self, value: bytes) -> bool:
        """Whether it was there before; it is from now on."""
        if value in self._now or value in self._before:
            return True
        if len(self._now) >= MOST // 2:
            self._before, self._now = self._now, set()
        self._now.add(value)
        return False
