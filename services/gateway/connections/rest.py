"""The rest of a read that is not carried out yet: one read can hold thousands of requests.

They are carried out in portions, in turn with other clients'. While the client is held for any reason the next portion
waits, so that a client does not have more requests in memory than it may have under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.gateway.connections.large_reads import are_large, is_question
from services.gateway.connections.turns import LITTLE, LONG, Turns

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection
    from services.gateway.protocols.dealings import Received


class Rest:
    """The rest of one connection, which is passed to each call; its socket is not read while there is a rest."""

    __slots__ = ("_data", "_turns", "_waits", "_was_long", "was_large")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._data = b""
        self._waits = False  # for its turn
        self._was_long = False  # the last read was, in whatever it had much of
        self.was_large = False  # the last read was, of large messages: they, or what there was of one

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
        if requests := connection.carry_out_all(data):
            connection.last.used = connection.last.read  # beats ask for nothing
            self.was_large = are_large(requests)
            if not self.was_large and is_question(requests[-1]):
                self._turns.asked = connection.last.read
        elif len(data) > LITTLE:
            self.was_large = True
        self.was_large &= not connection.engine.unread
        effort = connection.engine.effort
        self._was_long = effort >= LONG
        if len(data) > LITTLE or not data or self._was_long:
            self._turns.spend(requests, len(data), effort)
        self.look(connection)
