"""Heartbeats of one connection (AMQP 0-9-1 section 4.2.7): sends ours, and checks that the client's come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection

log = structlog.get_logger()


class Heartbeat:
    """The heartbeat of an open connection; its timer is one of the connection's timers."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def beat(self) -> None:
        """Cuts off a silent client, sends a heartbeat if nothing was written lately, and schedules itself again."""
        connection, loop = self._connection, self._connection.loop
        if connection.lost:
            return
        interval, now = connection.engine.heartbeat, loop.time()
        if not connection.held and now - connection.last.read > 2 * interval:
            log.info("no heartbeat from client", connection=connection.name, peer=connection.peer, seconds=2 * interval)
            connection.cut_off()
            return
        if now - connection.last.wrote >= interval / 2:
            connection.engine.beat()
            connection.write()
        connection.timers[:] = [loop.call_later(interval / 4, self.beat)]
