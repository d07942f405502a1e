"""Metrics of a gateway's clients: read when asked for, so that they cost nothing per message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.common.metrics.catalogue import clients as c
from services.common.metrics.catalogue import processes as p

if TYPE_CHECKING:
    from services.common.bus.event_bus import EventBus
    from services.common.metrics.meters import Meters
    from services.gateway.connections.listener import Listener

_INCOMING = "incoming"


def measure_clients(meters: Meters, listener: Listener, bus: EventBus) -> None:
    """Adds the metrics of one gateway's clients."""
    doors, incoming, happened = listener.doors, listener.incoming, bus.happened
    meters.number(c.CONNECTIONS, lambda: doors.inside)
    meters.number(c.COMING, lambda: doors.coming)
    meters.number(c.CONNECTIONS_LIMIT, lambda: doors.limit)
    meters.number(c.CONNECTIONS_OPENED, lambda: happened["connection.opened"])
    meters.number(c.CONNECTIONS_CLOSED, lambda: happened["connection.closed"])
    meters.number(c.BLOCKED, lambda: sum(each.blocked.told for each in listener.connections))
    meters.number(c.HELD, lambda: sum(each.held for each in listener.connections))
    meters.number(c.SESSIONS, lambda: sum(len(each.sessions) for each in listener.connections))
    meters.number(p.MEMORY, lambda: incoming.total, _INCOMING)
    meters.number(p.MEMORY_LIMIT, lambda: incoming.limit, _INCOMING)
