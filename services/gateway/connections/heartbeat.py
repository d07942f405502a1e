"""Beats of one connection, as its protocol's rule says: sends ours, and checks that the client is not silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection
    from services.gateway.protocols.idleness import Idleness

log = structlog.get_logger()


class Heartbeat:
    """The beats of an open connection; their timer is one of the connection's timers."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def beat(self) -> None:
        """Cuts off a silent client, sends a beat if nothing was written lately, and schedules itself again."""
        connection, loop = self._connection, self._connection.loop
        if connection.lost:
            return
        its, now = connection.engine.idleness, loop.time()
        if its.theirs and not connection.held and now - connection.last.read > its.theirs:
            log.info("no heartbeat from client", connection=connection.name, peer=connection.peer, seconds=its.theirs)
            connection.cut_off()
            return
        if its.ours and now - connection.last.wrote >= its.ours:
            connection.engine.beat()
            connection.write()
        connection.timers[:] = [loop.call_later(_pause(its), self.beat)]


def _pause(its: Idleness) -> float:
    """Until the next look: what is due is at most so much late."""
    return min(pause for pause in (its.ours / 2, its.theirs / 8) if pause)
