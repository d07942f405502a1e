"""How much a socket may be behind with what is written to it: a lot, while few are.

Each socket may be a little behind. One that is, and goes on, may be as much behind as keeps a busy client at full
speed, as long as the gateway's budget for that lasts. When it is used up, sockets that have caught up give their part
back. The others, whose clients do not read, keep theirs, and the remaining sockets get little at a time.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Final

MUCH: Final = 1 << 20  # bytes
LITTLE: Final = 128 << 10  # bytes
_AGAIN = 4  # one part in so many is left when a socket is written to again
_CAUGHT_UP = 2 * LITTLE  # bytes below which who was much behind is so no more: one write may be above what is little
_LOOKS = 8  # at those who may have caught up, when another socket is behind


class Outgoing:
    """One for each gateway."""

    def __init__(self, limit: int) -> None:
        """`limit` in bytes, beyond the little that each socket may be behind."""
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
