"""How much a socket may be behind with what is written to it: a lot, while few are.

Everybody may be a little behind. Who is, and takes more, may be as much behind as keeps a busy client at full speed,
as long as there is room for that: a gateway has a budget for all of them. When it is used up, those who have caught up
give theirs back. With the others, who do not read, it stays at what they have; everybody else gets little at a time.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Final

MUCH: Final = 1 << 20  # bytes
LITTLE: Final = 128 << 10  # bytes
_AGAIN = 4  # one part in so many is left when a socket is written to again
_CAUGHT_UP = 2 * LITTLE  # bytes below which who was much behind is so no more: one write may be above what is little
_LOOKS = 8  # at those who may have caught up, when somebody else is behind


class Outgoing:
    """One for each gateway."""

    def __init__(self, limit: int) -> None:
        """`limit` in bytes, beyond the little that everybody may be behind."""
        self._most = max(limit // MUCH, 1)
        self._behind: dict[asyncio.WriteTransport, None] = {}  # who may be much behind; looked at longest ago first

    def come(self, transport: asyncio.WriteTransport) -> None:
        """A socket that nothing is written to yet."""
        _allow(transport, LITTLE)

    def paused(self, transport: asyncio.WriteTransport) -> None:
        """It is as much behind as it may be."""
        if transport in self._behind:
            return
        if len(self._behind) >= self._most:
            self._take_back()
        if len(self._behind) < self._most:
            self._behind[transport] = None
            _allow(transport, MUCH)

    def forget(self, transport: asyncio.WriteTransport | None) -> None:
        """It is gone."""
        if transport:
            self._behind.pop(transport, None)

    def _take_back(self) -> None:
        for transport in list(islice(self._behind, _LOOKS)):
            del self._behind[transport]
            if transport.get_write_buffer_size() < _CAUGHT_UP:
                _allow(transport, LITTLE)
            else:
                self._behind[transport] = None


def _allow(transport: asyncio.WriteTransport, size: int) -> None:
    transport.set_write_buffer_limits(size, size // _AGAIN)
