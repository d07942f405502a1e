"""What was read of a client and is not carried out yet: one read can hold thousands of requests.

They are carried out in portions, in turn with other clients'. While the client is held for any reason the next portion
waits, so that no more of its requests are in memory than it may have under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.gateway.connections.turns import LITTLE, Turns

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection


class Rest:
    """Of one connection, which is given to each call; its socket is not read as long as there is any."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._data = b""
        self._waits = False  # for its turn

    def read(self, connection: Connection, data: bytes) -> None:
        """Carries out what a read gave, now or in turn."""
        if self._data or self._waits or (len(data) > LITTLE and self._turns.over):
            self._data += data
            self.look(connection)
        else:
            self._carry_out(connection, data)

    def look(self, connection: Connection) -> None:
        """Something was carried out, or the connection is held for one reason less."""
        if connection.lost or not (self._data or connection.engine.unread):
            connection.release(self)
            return
        connection.hold(self)
        if not self._waits and not connection.held_but(self):
            self._waits = True
            self._turns.wait(connection)

    def go_on(self, connection: Connection) -> None:
        """It is its turn."""
        self._waits = False
        if not connection.lost and not connection.held_but(self):
            data, self._data = self._data, b""
            self._carry_out(connection, data)

    def _carry_out(self, connection: Connection, data: bytes) -> None:
        requests = connection.carry_out_all(data)
        if len(data) > LITTLE or not data:
            self._turns.spend(requests, len(data))
        self.look(connection)
