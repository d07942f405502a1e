"""Heartbeats of one connection (AMQP 0-9-1 section 4.2.7): ours, and whether the client's come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection

log = structlog.get_logger()


class Heartbeat:
    """Of a connection that is open; its timer goes with the connection's others."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def beat(self) -> None:
        """Ends a client that is silent, writes where nothing was written, and does so again in time."""
        connection, loop = self._connection, self._connection.loop
        if connection.lost:
            return
        interval, now = connection.engine.heartbeat, loop.time()
        if not connection.held and now - connection.last_read > 2 * interval:
            log.info("no heartbeat from client", connection=connection.name, peer=connection.peer, seconds=2 * interval)
            connection.cut_off()
            return
        if now - connection.last_write >= interval / 2:
            connection.engine.beat()
            connection.write()
        connection.timers[:] = [loop.call_later(interval / 4, self.beat)]
