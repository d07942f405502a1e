"""What was read of a client and is not looked at yet: one read can hold thousands of requests.

They are carried out in portions, and others have their turns between these. While the client is held for any reason the
next portion waits, so that no more of its requests are in memory than it may have under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.gateway.connection import Connection


class Rest:
    """Of one connection, whose socket is not read as long as there is any."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._called = False

    def look(self) -> None:
        """A portion was carried out, or the connection is held for one reason less."""
        connection = self._connection
        if not connection.engine.unread or connection.lost:
            connection.release(self)
            return
        connection.hold(self)
        if not self._called and not connection.held_but(self):
            self._called = True
            connection.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._called = False
        connection = self._connection
        if not connection.lost and not connection.held_but(self):
            connection.carry_on(b"")
