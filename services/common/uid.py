"""Message uids: 63 bits, `origin << 39 | sequence`. They never repeat and sort by arrival within an origin."""

from __future__ import annotations

from dataclasses import dataclass

SEQUENCE_BITS = 39
SEQUENCE_MASK = (1 << SEQUENCE_BITS) - 1


def origin_of(uid: int) -> int:
    """The origin of `uid`: one gateway incarnation."""
    return uid >> SEQUENCE_BITS


@dataclass(slots=True)
class UidSource:
    """Gives the uids of one incarnation; `origin` comes from the store and is never used again."""

    origin: int
    _next: int = 1

    def take(self, count: int = 1) -> range:
        """The next `count` uids, ascending."""
        first = self.origin << SEQUENCE_BITS | self._next
        self._next += count
        return range(first, first + count)
