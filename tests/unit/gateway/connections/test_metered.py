from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from services.common.metrics.meters import Meters
from services.gateway.connections.blocked import Blocked
from services.gateway.connections.doors import Doors
from services.gateway.connections.metered import measure_clients


class Peer(SimpleNamespace):
    __hash__ = object.__hash__


def _told(meters: Meters) -> dict[str, float]:
    return {instrument.name: samples[0][1] for instrument, samples, _ in meters.measured()}


def test_who_is_connected() -> None:
    """A gateway tells who is in and who is coming, how many sessions they have, and what was told to whom."""
    peers: list[Any] = [Peer(sessions={1: None, 2: None}, held=number == 0) for number in range(3)]
    connections = [MagicMock(lost=False) for _ in peers]
    doors, incoming = Doors(5, 10_128), SimpleNamespace(total=300, limit=1000)
    for peer, connection in zip(peers, connections, strict=True):
        peer.blocked = Blocked(connection)
        doors.come(peer)
    for peer in peers[:2]:
        doors.enter(peer)
    peers[1].blocked.block("memory", "low on memory")
    peers[1].blocked.block("disk", "low on disk")
    meters, listener = (
        Meters("gateway", "gateway-1"),
        SimpleNamespace(doors=doors, incoming=incoming, connections=peers),
    )
    bus: Any = SimpleNamespace(happened=Counter({"connection.opened": 7, "connection.closed": 5}))
    measure_clients(meters, listener, bus)  # type: ignore[arg-type]
    told = {name.removeprefix("hopline."): value for name, value in _told(meters).items()}
    assert told == {
        "connections": 2,
        "connections.coming": 1,
        "connections.limit": 5,
        "connections.opened": 7,
        "connections.closed": 5,
        "connections.blocked": 1,
        "connections.held": 1,
        "sessions": 6,
        "memory.used": 300,
        "memory.limit": 1000,
    }
    peers[1].blocked.unblock("memory")
    assert _told(meters)["hopline.connections.blocked"] == 1
    peers[1].blocked.unblock("disk")
    assert _told(meters)["hopline.connections.blocked"] == 0
