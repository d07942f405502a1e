"""Sockets that are read much at a time: a turn has costs of its own, for each queue that gets something in it.

These are the sockets of clients that send large messages, and those that have more than a usual read takes, unless
that takes long. One read is under way at a time, so all of them are read into the same memory. Large messages are lent
from it: whoever keeps some of it copies that. No more is read at a time than of any other socket while others ask for
something (they wait for a turn, here and in queue processes), while what has begun to come in takes much memory, and in
a turn whose budget is spent: what is read then waits in memory that nothing counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from services.gateway.connections.turns import LITTLE, Turns
from services.gateway.protocols.dealings import LARGE
from services.gateway.vocabulary import Credit, Publish, Request, Settle

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection
    from services.gateway.connections.incoming import Incoming


_MOST: Final = 4 << 20  # bytes of a read …
_MUCH: Final = 1 << 20  # … and of messages of which it has many
_MESSAGES: Final = 4  # in a read are enough: more in a turn of one process is a wait of the next
_USUAL: Final = 250 << 10  # as uvloop reads a socket
FULL: Final = 200_000
"""Bytes of a read, from which on there is more, most likely: others have their turn before that is read."""
_LONG: Final = 0.04  # seconds of a read: others wait meanwhile
_QUIET: Final = 1.0  # seconds without a question of others
_NO_QUESTIONS: Final = (Settle, Credit)


def large_size(requests: Sequence[Request]) -> int:
    """Bytes of a message where these publish large ones and nothing else; 0 otherwise."""
    if [each for each in requests if not _is_large(each)]:  # no generator: called for each read
        return 0
    last = requests[-1]
    return len(last.bodies[0]) if isinstance(last, Publish) else 0


def is_quick(size: int, seconds: float) -> bool:
    """Whether a read of much takes no longer than others may wait, where one of `size` bytes took so many seconds."""
    return seconds * _MUCH < _LONG * size


def is_question(request: Request) -> bool:
    """Whether a client may wait for an answer to it."""
    return not isinstance(request, _NO_QUESTIONS)


def _is_large(request: Request) -> bool:
    if not isinstance(request, Publish):
        return False
    bodies = request.bodies
    return len(bodies[0]) >= LARGE and sum(map(len, bodies)) >= LARGE * len(bodies)


class ReadRoom:
    """One for each gateway. It takes memory from when a client sends large messages."""

    def __init__(self, turns: Turns, incoming: Incoming) -> None:
        self._turns = turns
        self._incoming = incoming

    @cached_property
    def memory(self) -> memoryview:
        """What sockets are read into."""
        return memoryview(bytearray(_MOST))

    def lend(self, name: str, now: float, size: int) -> memoryview:
        """As much of it as the next read of a connection may fill; `size`: bytes of its messages, if they are large."""
        quiet = now - self._turns.questions.of_others(name) > _QUIET
        alone = quiet and not self._turns.over and self._incoming.has_plenty
        return self.memory[: max(_MUCH, min(_MESSAGES * size, _MOST)) if alone else _USUAL]


class LargeReads(asyncio.BufferedProtocol):
    """Stands between a socket and its connection."""

    __slots__ = ("_connection", "_room")

    def __init__(self, connection: Connection, room: ReadRoom) -> None:
        self._connection = connection
        self._room = room

    def get_buffer(self, _size: int) -> memoryview:
        connection = self._connection
        return self._room.lend(connection.name, connection.loop.time(), connection.rest.large)

    def buffer_updated(self, count: int) -> None:
        lent, large = self._room.memory[:count], count > LITTLE and self._connection.rest.large > 0
        self._connection.data_received(lent if large else bytes(lent))

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, failure: Exception | None) -> None:
        self._connection.connection_lost(failure)
