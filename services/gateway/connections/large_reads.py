"""A socket whose client sends large messages, read much at a time: a turn costs nearly the same whatever it holds.

One read is under way at a time, so all such sockets of a gateway are read into the same memory. What was read is lent:
whoever keeps some of it copies that. No more is read at a time than of any other socket while others ask for something
(they wait for a turn, here and in queue processes), while what has begun to come in takes much memory, and in a turn
whose budget is spent: what is read then waits in memory that nothing counts.
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


_MUCH: Final = 1 << 20  # bytes of a read
_USUAL: Final = 250 << 10  # as uvloop reads a socket
_QUIET: Final = 1.0  # seconds without a question of others
_NO_QUESTIONS: Final = (Settle, Credit)


def are_large(requests: Sequence[Request]) -> bool:
    """Whether these publish large messages and nothing else."""
    return not [each for each in requests if not _is_large(each)]  # no generator: called for each read


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
        return memoryview(bytearray(_MUCH))

    def lend(self, now: float) -> memoryview:
        """As much of it as the next read may fill."""
        alone = now - self._turns.asked > _QUIET and not self._turns.over and self._incoming.has_plenty
        return self.memory if alone else self.memory[:_USUAL]


class LargeReads(asyncio.BufferedProtocol):
    """Stands between a socket and its connection."""

    __slots__ = ("_connection", "_room")

    def __init__(self, connection: Connection, room: ReadRoom) -> None:
        self._connection = connection
        self._room = room

    def get_buffer(self, _size: int) -> memoryview:
        return self._room.lend(self._connection.loop.time())

    def buffer_updated(self, count: int) -> None:
        lent = self._room.memory[:count]
        self._connection.data_received(lent if count > LITTLE else bytes(lent))

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, failure: Exception | None) -> None:
        self._connection.connection_lost(failure)
