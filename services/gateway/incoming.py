"""What has begun to come in and is not complete, of all connections: bounded, so that many who begin large messages and
go on slowly, or not at all, do not take a gateway's memory.

Above the limit one connection is read on, the one that began first, and the others wait for it to be done. One that is
waited for and sends nothing is ended.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from services.gateway.connection import Connection

log = structlog.get_logger()

_READ = 256 << 10  # bytes that one read of a socket gives, at most
_SILENCE = 5.0  # seconds


class Incoming:
    """One for each gateway."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self._sizes: dict[Connection, int] = {}  # who began first comes first
        self._held: dict[Connection, None] = {}
        self._first: Connection | None = None  # whom the others wait for
        self._patience: asyncio.TimerHandle | None = None

    def note(self, connection: Connection, size: int) -> None:
        """A read has left so much of a connection incomplete."""
        before = self._sizes.get(connection, 0)
        if size == before == 0:
            return
        self.total += size - before
        if size:
            self._sizes[connection] = size
        else:
            del self._sizes[connection]
        if self.total > self.limit or self._held:
            self._choose(connection)

    def forget(self, connection: Connection) -> None:
        """It is gone."""
        self._held.pop(connection, None)
        self.total -= self._sizes.pop(connection, 0)
        if self._held:
            self._choose(None)

    def _choose(self, read: Connection | None) -> None:
        """Who is read on; `read` has just been."""
        first = next(iter(self._sizes), None)
        if self.total > self.limit and read in self._sizes and read is not first:
            assert read is not None
            self._held[read] = None
            read.hold(self)
        room = max((self.limit - self.total) // _READ, 0)
        going = list(self._held)[:room]
        if first in self._held and first not in going:
            assert first is not None
            going.append(first)
        for connection in going:
            del self._held[connection]
            connection.release(self)
        if read is first or first is not self._first or not self._held:
            self._wait_for(first)

    def _wait_for(self, first: Connection | None) -> None:
        if self._patience:
            self._patience.cancel()
        self._first, self._patience = first if self._held else None, None
        if first and self._held:
            self._patience = asyncio.get_running_loop().call_later(_SILENCE, self._give_up, first)

    def _give_up(self, first: Connection) -> None:
        if self._held and first in self._sizes:
            log.warning("a connection that others wait for sends nothing and ends", connection=first.name)
            first.shut_down("low on memory: others wait for a message that was begun and does not come")
