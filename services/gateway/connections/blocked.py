"""A client that is read no further, and is told why (RabbitMQ's connection.blocked): memory or disk is short, or a
queue has more than it wants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import proxy

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection

# A queue process says which of its queues are full, and not why.
CONSUMERS_FIRST = "low on memory, or a queue has more than it wants: consumers must take messages first"


class Blocked:
    """The blocks of one connection: it is told blocked with the first, and unblocked when the last is gone."""

    def __init__(self, connection: Connection) -> None:
        self._connection = proxy(connection)  # weak: the connection refers to this, and a cycle would outlive it
        self._by: set[object] = set()

    @property
    def told(self) -> bool:
        """Whether the client has been told that it is blocked."""
        return bool(self._by)

    def block(self, by: object, reason: str) -> None:
        """Blocks until `unblock` with the same `by`; `reason` is for people."""
        connection = self._connection
        if not self._by:
            connection.engine.blocked(reason)
            connection.flush_soon()
        self._by.add(by)
        if not connection.engine.holds_back:
            connection.hold(by)

    def unblock(self, by: object) -> None:
        """Takes back a block, or a hold of which the client was not told."""
        connection = self._connection
        if connection.lost:
            return
        if self._by == {by}:
            connection.engine.blocked(None)
            connection.flush_soon()
        self._by.discard(by)
        connection.release(by)
