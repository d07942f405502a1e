from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from services.common.config import Settings
from services.common.ledger.place import LedgerPlace
from services.common.ledger.recorder import OFF
from services.common.metrics.meters import Meters
from services.common.metrics.stages import CountedStages
from services.gateway.connections.apart import Apart
from services.gateway.connections.blocked import Blocked
from services.gateway.connections.doors import Doors
from services.gateway.connections.metered import measure_clients
from services.rpc import ledger_pb2 as ledger


class Peer(SimpleNamespace):
    __hash__ = object.__hash__


def _told(meters: Meters) -> dict[str, float]:
    return {instrument.name: samples[0][1] for instrument, samples, _ in meters.measured()}


def test_who_is_connected() -> None:
    """A gateway tells who is in and who is coming, how many sessions they have, and what was told to whom."""
    peers: list[Any] = [Peer(peer_host="", sessions={1: None, 2: None}, held=number == 0) for number in range(3)]
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


def _apart(meters: Meters) -> dict[tuple[str, ...], float]:
    return {
        (instrument.name.removeprefix("hopline."), *labels): value
        for instrument, samples, _ in meters.measured(per_object=True)
        for labels, value in samples
    }


async def test_single_exchanges_and_connections(tmp_path: Path) -> None:
    """What each has, and what was counted of it, as long as it is there; of those that are gone nothing is kept."""
    settings = Settings(data=tmp_path, metrics_exchanges=True, metrics_connections=True)
    session: Any = SimpleNamespace(consumers={1: None}, numbers=[1, 2])
    here = Peer(name="1.1", virtual_host="/", lost=False, sessions={1: session, 2: session})
    coming = Peer(name="1.2", virtual_host="", lost=False, sessions={})
    meters = Meters("gateway", "gateway-1")
    apart = Apart(meters, settings, lambda _, name: name == "shop")
    counted = CountedStages(OFF, meters, apart.counted)
    apart.measure(SimpleNamespace(connections=[here, coming]))  # type: ignore[arg-type]
    for exchange, connection in (("shop", "1.1"), ("none", "1.1"), ("shop", "1.0")):
        counted.record(ledger.RECEIVED, LedgerPlace("/", exchange=exchange, connection=connection), range(2))
    await meters.survey()
    found = {name: value for name, value in _apart(meters).items() if not name[0].startswith("messages.")}
    assert found == {
        ("connection.sessions", "/", "1.1"): 2,
        ("connection.consumers", "/", "1.1"): 2,
        ("connection.messages.unsettled", "/", "1.1"): 4,
        ("connection.messages.received", "/", "1.1"): 4,
        ("exchange.messages.received", "/", "shop"): 4,
    }


def test_none_of_them_unless_wanted(tmp_path: Path) -> None:
    """Nothing is counted apart, and nothing told."""
    meters = Meters("gateway", "gateway-1")
    apart = Apart(meters, Settings(data=tmp_path), lambda _host, _name: True)
    apart.measure(SimpleNamespace(connections=[Peer(name="1.1", virtual_host="/", lost=False, sessions={})]))  # type: ignore[arg-type]
    assert (apart.counted, _apart(meters)) == ([], {})
