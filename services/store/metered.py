"""Metrics of the store: its disk, and changes of leases. Those of commits are in `commit_times.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from services.common.audit.entry import CHANGED
from services.common.metrics.catalogue import stores as s

if TYPE_CHECKING:
    from services.common.audit.audit import Audit
    from services.common.bus.event_bus import EventBus
    from services.common.metrics.meters import Meters, Samples
    from services.store.engine import Engine

_LEASES = ("acquired", "released", "lost")


def measure_store(meters: Meters, engine: Engine, bus: EventBus, audit: Audit) -> None:
    """Adds the metrics of one store."""
    meters.number(s.STORE_WRITES, lambda: engine.incarnation > 0)
    meters.read(s.LEASES, lambda: _leases(bus.happened))
    meters.read(s.DISK_FREE, lambda: _room(engine, 0))
    meters.read(s.DISK_SIZE, lambda: _room(engine, 1))
    meters.number(s.DISK_LOW, lambda: engine.disk.low)
    meters.number(s.CONFIGURED, lambda: audit.happened[CHANGED])


def _leases(happened: Counter[str] | Mapping[str, int]) -> Samples:
    return [((word,), happened[f"lease.{word}"]) for word in _LEASES]


def _room(engine: Engine, which: int) -> Samples:
    """No sample where the data is on no disk that this process sees."""
    found = engine.provider.room()
    return [] if found is None else [((), found[which])]
