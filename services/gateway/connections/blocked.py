"""A client that is read no further, and was told why (RabbitMQ's connection.blocked), whatever is short."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import proxy

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection

LOW_ON_MEMORY = "low on memory: consumers must take messages first"


class Blocked:
    """Of one connection: blocked is said with the first reason, unblocked when the last one is gone."""

    def __init__(self, connection: Connection) -> None:
        self._connection = proxy(connection)  # which has this one: a circle would stay when it is gone
        self._by: set[object] = set()

    @property
    def told(self) -> bool:
        """Whether its client knows that it is."""
        return bool(self._by)

    def block(self, by: object, reason: str) -> None:
        """Until `unblock` with the same `by`; `reason` is for people."""
        connection = self._connection
        connection.hold(by)
        if not self._by:
            connection.engine.blocked(reason)
            connection.flush_soon()
        self._by.add(by)

    def unblock(self, by: object) -> None:
        """Takes a reason back, or a hold that nothing was said of."""
        connection = self._connection
        if connection.lost:
            return
        if self._by == {by}:
            connection.engine.blocked(None)
            connection.flush_soon()
        self._by.discard(by)
        connection.release(by)
