"""The rest of a read that is not carried out yet: one read can hold thousands of requests.

They are carried out in portions, in turn with other clients'. While the client is held for any reason the next portion
waits, so that a client does not have more requests in memory than it may have under way.
"""

from __future__ import annotations

from time import thread_time
from typing import TYPE_CHECKING

from services.gateway.connections.large_reads import FULL, is_question, is_quick, large_size
from services.gateway.connections.turns import LITTLE, LONG, Turns

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection
    from services.gateway.protocols.dealings import Received


class Rest:
    """The rest of one connection, which is passed to each call; its socket is not read while there is a rest."""

    __slots__ = ("_data", "_turns", "_waits", "_was_long", "has_more", "large")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._data = b""
        self._waits = False  # for its turn
        self._was_long = False  # the last read was, in whatever it had much of
        self.large = 0  # bytes of a message, or of what there was of one, where the last read was of large ones
        self.has_more = False  # the socket most likely has, and the last read took little time for what it held

    def read(self, connection: Connection, data: Received) -> None:
        """Carries out the requests of a read, now or in turn. `data` may be lent."""
        if self._data or self._waits or ((self._was_long or len(data) > LITTLE) and self._turns.over):
            self._data += bytes(data)
            self.look(connection)
        else:
            self._carry_out(connection, data)

    def look(self, connection: Connection) -> None:
        """Called when requests were carried out, or when a reason to hold the connection is gone."""
        if connection.lost or not (self._data or connection.engine.unread):
            connection.release(self)
            return
        connection.hold(self)
        if not self._waits and not connection.held_but(self):
            self._waits = True
            self._turns.wait(connection)

    def go_on(self, connection: Connection) -> None:
        """It is the connection's turn: carries out the next portion."""
        self._waits = False
        if not connection.lost and not connection.held_but(self):
            data, self._data = self._data, b""
            self._carry_out(connection, data)

    def _carry_out(self, connection: Connection, data: Received) -> None:
        began = thread_time() if len(data) >= FULL else 0.0
        if requests := connection.carry_out_all(data):
            connection.last.used = connection.last.read  # beats ask for nothing
            self.large = large_size(requests)
            if not self.large and len(data) < FULL and is_question(requests[-1]):
                self._turns.questions.ask(connection.name, connection.last.read)
        elif len(data) > LITTLE:
            self.large = max(self.large, len(data))
        if connection.engine.unread:
            self.large = 0
        full = len(data) >= FULL and not connection.engine.unread
        self.has_more = full and is_quick(len(data), thread_time() - began)
        effort = connection.engine.effort
        self._was_long = effort >= LONG
        if len(data) > LITTLE or not data or self._was_long:
            self._turns.spend(requests, len(data), effort)
        self.look(connection)
