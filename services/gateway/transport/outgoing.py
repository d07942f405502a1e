"""How many unsent bytes a socket may have before writing to it pauses: many, while few sockets need them.

Each socket may be a little behind. One that reaches this may be as much behind as keeps a busy client at full speed, as
long as the gateway's budget lasts. When the budget is used up, sockets that have caught up give their part back. Those
of clients that do not read keep theirs, and the remaining sockets get little at a time.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Final

MUCH: Final = 1 << 20  # bytes
LITTLE: Final = 128 << 10  # bytes
_AGAIN = 4  # writing goes on when only one part in so many is left
_CAUGHT_UP = 2 * LITTLE  # bytes below which a socket has caught up: a single write may exceed LITTLE
_LOOKS = 8  # sockets checked for having caught up, when another one is behind


class Outgoing:
    """One for each gateway."""

    def __init__(self, limit: int) -> None:
        """`limit` in bytes, beyond the little that each socket may be behind."""
        self._most = max(limit // MUCH, 1)
        self._behind: dict[asyncio.WriteTransport, None] = {}  # may be much behind; last checked comes last

    def come(self, transport: asyncio.WriteTransport) -> None:
        """A new socket, to which nothing is written yet."""
        _allow(transport, LITTLE)

    def paused(self, transport: asyncio.WriteTransport) -> None:
        """The socket is as much behind as it may be: allows it more, if the budget lasts."""
        if transport in self._behind:
            return
        if len(self._behind) >= self._most:
            self._take_back()
        if len(self._behind) < self._most:
            self._behind[transport] = None
            _allow(transport, MUCH)

    def forget(self, transport: asyncio.WriteTransport | None) -> None:
        """The socket is gone."""
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
