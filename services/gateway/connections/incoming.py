"""Bounds the bytes of incomplete frames and messages of all connections: clients that begin large messages and go on
slowly, or not at all, must not take a gateway's memory. Peers that have not signed in have a budget of their own.

Above the limit a connection that has more than a little is read no further, and waits for room; small messages go on.
The connection that began first is always read, so that its message can be completed. Room is given for one read at a
time: a connection that does not use it waits for another turn. When that makes no room, connections without progress
for too long are ended, also those that wait: others need the memory that they keep.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import structlog

from services.gateway.connections.strangers import Strangers

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection

log = structlog.get_logger()

_READ = 256 << 10  # bytes that one read of a socket gives, at most, while much of the limit is taken
_PROGRESS = 64 << 10  # bytes in the time that is allowed: less does not count as progress
_LITTLE = 64 << 10  # bytes
_TURN = 0.1  # seconds: what a socket has is read in one turn of the loop
_LOOKS = 4  # checks for progress, within the patience
_TURNS = 4  # times the patience that a held connection has, while others complete their messages
_ROOM = 8  # one part in so many of the limit has to be free after some were ended
_PLENTY = 8  # less than one part in so many of the limit is little
_STRANGERS = 8  # one part in so many of the limit is the extra budget of peers that have not signed in
_DO = "see why its client stops amid a message; HOPLINE_INCOMING_TIMEOUT says for how long it may"
_TOLD = "low on memory: others wait for a message that was begun and does not come"


@dataclass(slots=True)
class _Part:
    """The incomplete part of one connection."""

    size: int
    since: float  # when it last made progress
    size_then: int


class Incoming:
    """One for each gateway."""

    def __init__(self, limit: int, patience: float) -> None:
        """`limit` in bytes; `patience` in seconds, for connections without progress while others wait."""
        self.limit = limit
        self.total = 0
        self._patience = patience
        self._parts: dict[Connection, _Part] = {}  # the first to begin comes first
        self._held: dict[Connection, None] = {}
        self._going: dict[Connection, bool] = {}  # has room for a read, and no read yet; whether for a whole turn
        self._moved = 0.0  # when a large part was last completed
        self._look: asyncio.TimerHandle | None = None
        self._turn: asyncio.TimerHandle | None = None
        self._strangers = Strangers(max(limit // _STRANGERS, _READ))

    def note(self, connection: Connection, size: int) -> None:
        """A read has left so much of a connection incomplete."""
        part = self._parts.get(connection)
        if not size and part is None and not self._strangers.total:
            return
        if not connection.virtual_host:
            self._strangers.note(connection, size)
            return
        self._strangers.forget(connection)
        before = part.size if part else 0
        if size == before == 0:
            return
        if self._going.pop(connection, None) is not None and part:
            part.since, part.size_then = _now(), before  # its silence counts only from when it had room
        if size < before and before > self._little:
            self._moved = _now()
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

    @property
    def has_plenty(self) -> bool:
        """Whether little of the limit is taken."""
        return self.total < self.limit // _PLENTY

    def forget(self, connection: Connection) -> None:
        """The connection is gone."""
        self._strangers.forget(connection)
        self._held.pop(connection, None)
        self._going.pop(connection, None)
        part = self._parts.pop(connection, None)
        self.total -= part.size if part else 0
        if self._held:
            self._choose(None)

    def _choose(self, read: Connection | None) -> None:
        """Chooses the connections to be read on; `read` has just been read."""
        first = next(iter(self._parts), None)
        if read and read is not first and self._has_too_much(read):
            self._hold(read)
        room = max((self.limit - self.total) // _READ - len(self._going), 0)
        going = list(islice(self._held, room))
        if first and first in self._held and first not in going:
            going.append(first)
        for connection in going:
            self._release(connection)
        loop = asyncio.get_running_loop()
        if self._look is None:
            self._look = loop.call_later(self._patience / _LOOKS, self._look_again)
        if self._turn is None and self._held and self._going:
            self._turn = loop.call_later(_TURN, self._end_turns)

    def _end_turns(self) -> None:
        """Connections that did not use their room give it to the next; their silence counts on from before."""
        self._turn = None
        first = next(iter(self._parts), None)
        idle = [connection for connection, whole in self._going.items() if whole and connection is not first]
        if self._held:
            for connection in idle:
                del self._going[connection]
                self._hold(connection)
        self._going = dict.fromkeys(self._going, True)
        self._choose(None)

    @property
    def _little(self) -> int:
        """What each connection may have: an equal share, and less while there are few, which may become many."""
        return min(self.limit // max(len(self._parts), 1), _LITTLE)

    def _has_too_much(self, connection: Connection) -> bool:
        part = self._parts.get(connection)
        return part is not None and self.total > self.limit and part.size > self._little

    def _hold(self, connection: Connection) -> None:
        self._held[connection] = None
        connection.hold(self)

    def _release(self, connection: Connection) -> None:
        del self._held[connection]
        self._going[connection] = False
        connection.release(self)

    def _look_again(self) -> None:
        """Ends connections without progress while there is too little room, until there is enough."""
        self._look = None
        if not self._held and self.total <= self.limit:
            return
        for connection in self._in_the_way():
            what = "a connection that others wait for does not go on and ends"
            log.warning(what, connection=connection.name, do=_DO)
            connection.shut_down(_TOLD)
        self._choose(None)

    def _in_the_way(self) -> list[Connection]:
        """As many of the connections without progress for too long as make room, in the order of `_rank`.

        First those that are read before those that are held, the largest first; those with little come last.
        """
        now, kept = _now(), self.total
        found: list[Connection] = []
        for connection in sorted(self._parts, key=self._rank):
            part = self._parts[connection]
            if connection.held_but(self):  # by full queues, or by its own requests
                part.since, part.size_then = now, part.size
            elif kept > self.limit - max(self.limit // _ROOM, _READ) and self._is_too_long(connection, now):
                kept -= part.size
                found.append(connection)
        return found

    def _rank(self, connection: Connection) -> tuple[bool, bool, int]:
        size = self._parts[connection].size
        return size <= self._little, connection in self._held, -size

    def _is_too_long(self, connection: Connection, now: float) -> bool:
        """Whether it made no progress for too long; a held connection has longer while others complete messages."""
        if self._going.get(connection) is False:
            return False
        silence = now - self._parts[connection].since
        if connection in self._held and now - self._moved < self._patience:
            return silence >= _TURNS * self._patience
        return silence >= self._patience


def _now() -> float:
    return asyncio.get_running_loop().time()
