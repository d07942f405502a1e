"""What a router measures: what there is, as it knows it, and what came and went."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from services.common.metrics.catalogue import stores as s

if TYPE_CHECKING:
    from services.common.bus.event_bus import EventBus
    from services.common.metrics.meters import Meters, Samples
    from services.router.topology.topology import Topology

_THINGS = ("virtual_host", "exchange", "queue", "binding")
_CHANGES = tuple(f"{thing}.{change}" for thing in _THINGS for change in ("created", "deleted"))


def measure_router(meters: Meters, topology: Callable[[], Topology | None], writes: Callable[[], bool]) -> None:
    """`topology` is none before it is known; followers tell the same as the router that writes."""
    meters.number(s.WRITES, writes)
    meters.read(s.DEFINED, lambda: _things(topology()))


def measure_changes(meters: Meters, bus: EventBus) -> None:
    """Told by the router that writes."""
    meters.read(s.CHANGES, lambda: _changes(bus.happened))


def _things(topology: Topology | None) -> Samples:
    if topology is None:
        return []
    hosts = topology.virtual_hosts
    numbers = (
        len(hosts),
        sum(len(host.sources) for host in hosts.values()),
        len(topology.queues),
        sum(len(source.bindings) for host in hosts.values() for source in host.sources.values()),
    )
    return [((thing,), number) for thing, number in zip(_THINGS, numbers, strict=True)]


def _changes(happened: Mapping[str, int]) -> Samples:
    return [((change,), happened.get(change, 0)) for change in _CHANGES]
