"""What has begun to come in and is not complete, of all connections: bounded, so that many who begin large messages and
go on slowly, or not at all, do not take a gateway's memory. What peers hold that have not signed in is part of it.

Above the limit who has more than an equal share of it is read no further, and waits for room; who has less goes on. The
one that began first is always read, so that it can end. Who does not go on while others wait for it is ended.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from services.gateway.connection import Connection

log = structlog.get_logger()

_READ = 256 << 10  # bytes that one read of a socket gives, at most
_PROGRESS = 64 << 10  # bytes, in the time that is allowed: a few of them each time are none
_LOOKS = 4  # at who goes on, in that time
_TOLD = "low on memory: others wait for a message that was begun and does not come"


@dataclass(slots=True)
class _Part:
    """Of one connection."""

    size: int
    since: float  # when it last went on
    size_then: int


class Incoming:
    """One for each gateway."""

    def __init__(self, limit: int, patience: float) -> None:
        """`limit` in bytes; `patience` in seconds, for those that others wait for."""
        self.limit = limit
        self.total = 0
        self._patience = patience
        self._parts: dict[Connection, _Part] = {}  # who began first comes first
        self._held: dict[Connection, None] = {}
        self._look: asyncio.TimerHandle | None = None

    def note(self, connection: Connection, size: int) -> None:
        """A read has left so much of a connection incomplete."""
        part = self._parts.get(connection)
        before = part.size if part else 0
        if size == before == 0:
            return
        self.total += size - before
        if not size:
            del self._parts[connection]
        elif part is None:
            self._parts[connection] = _Part(size, _now(), size)
        else:
            self._went_on(part, size)
        if self.total > self.limit or self._held:
            self._choose(connection)

    def _went_on(self, part: _Part, size: int) -> None:
        # Less than before: a message is complete, and another one has begun.
        if size < part.size or size >= part.size_then + _PROGRESS:
            part.since, part.size_then = _now(), size
        part.size = size

    def forget(self, connection: Connection) -> None:
        """It is gone."""
        self._held.pop(connection, None)
        part = self._parts.pop(connection, None)
        self.total -= part.size if part else 0
        if self._held:
            self._choose(None)

    def _choose(self, read: Connection | None) -> None:
        """Who is read on; `read` has just been."""
        first = next(iter(self._parts), None)
        if read and read is not first and self._has_too_much(read):
            self._held[read] = None
            read.hold(self)
        room = max((self.limit - self.total) // _READ, 0)
        going = list(islice(self._held, room))
        if first and first in self._held and first not in going:
            going.append(first)
        for connection in going:
            self._release(connection)
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(self._patience / _LOOKS, self._look_again)

    @property
    def _share(self) -> int:
        return self.limit // max(len(self._parts), 1)

    def _has_too_much(self, connection: Connection) -> bool:
        part = self._parts.get(connection)
        return part is not None and self.total > self.limit and part.size > self._share

    def _release(self, connection: Connection) -> None:
        del self._held[connection]
        part = self._parts[connection]
        part.since, part.size_then = _now(), part.size
        connection.release(self)

    def _look_again(self) -> None:
        """Ends those that do not go on while there is too little room, until there is enough."""
        self._look = None
        if not self._held and self.total <= self.limit:
            return
        for connection in self._silent():
            log.warning("a connection that others wait for does not go on and ends", connection=connection.name)
            connection.shut_down(_TOLD)
        self._choose(None)

    def _silent(self) -> list[Connection]:
        """Who is read, and did not go on for too long, of those that hold much, and the first one."""
        now, first, share, found = _now(), next(iter(self._parts), None), self._share, []
        for connection, part in self._parts.items():
            if connection.held:  # that is our doing
                part.since, part.size_then = now, part.size
            elif part.since <= now - self._patience and (part.size >= share or connection is first):
                found.append(connection)
        return found


def _now() -> float:
    return asyncio.get_running_loop().time()
