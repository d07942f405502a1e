"""Turns of a gateway's connections, when many have sent much at once.

Small reads are carried out as they come, unless the client's last one took long. Others spend the budget of one turn
of the loop; when it is spent the rest of these wait, first come first served, so that a client that asks for little is
answered within one turn. What is spent is counted in requests, messages, bytes and frames: a peer can send any of them
without the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from services.gateway.connections.questions import Questions
from services.gateway.vocabulary import Publish, Request

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection

LITTLE: Final = 4 << 10
"""Bytes of a read, up to which it is carried out at once."""

LONG: Final = 200
"""Microseconds that a read takes, from which on it is not small, in however few bytes."""

_UNITS = 1000  # of work in a turn: about ten milliseconds
_EFFORT = 10  # microseconds of an engine's work that make up a unit
_BYTES = 2 << 10  # so many bytes make up a unit, as does a request …
_MESSAGES = 4  # … and as do so many messages of a publish


class Turns:
    """One for each gateway."""

    def __init__(self) -> None:
        self._spent = 0
        self._waiting: deque[Connection] = deque()
        self._scheduled = False
        self.questions = Questions()

    @property
    def over(self) -> bool:
        """Whether large reads have to wait for the next turn."""
        return self._spent >= _UNITS or bool(self._waiting)

    def spend(self, requests: Sequence[Request], size: int, effort: int) -> None:
        """These requests were carried out, and so many bytes read; it took an engine so many microseconds."""
        messages = sum(len(each.bodies) for each in requests if isinstance(each, Publish))
        self._spent += len(requests) + messages // _MESSAGES + size // _BYTES + effort // _EFFORT
        self._schedule()

    def wait(self, connection: Connection) -> None:
        """Has the connection's rest carried out when it is its turn."""
        self._waiting.append(connection)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._scheduled = False
        self._spent = 0
        while self._waiting and self._spent < _UNITS:
            connection = self._waiting.popleft()
            connection.rest.go_on(connection)
        if self._waiting:
            self._schedule()
