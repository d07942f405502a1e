"""Giving and taking places: kept as records, so that the next router waits for the same watchers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NoReturn

import structlog

from services.common.bus.events import Events
from services.common.bus.facts import GatewayLost
from services.common.clock import monotonic
from services.common.containment import contained
from services.common.errors import BrokerError, Unavailable
from services.router.changes import Changes
from services.router.lease import Lease
from services.router.topology.effects import Effects
from services.router.topology.topology import Topology
from services.router.watchers import ExpectedWatcher, Watchers, place_key, place_record

_SILENT = "silent"

log = structlog.get_logger()


class WatcherPresence:
    """What happens when watchers come and go."""

    def __init__(
        self, topology: Topology, changes: Changes, watchers: Watchers, lease: Lease, ttl: float, events: Events
    ) -> None:
        self._topology = topology
        self._changes = changes
        self._watchers = watchers
        self._lease = lease
        self._ttl = ttl
        self._events = events

    async def take(self, member: str, role: str, connections: str) -> ExpectedWatcher:
        """The place of a watcher that is known, or a new one as soon as it is kept; raises Unavailable."""
        if place := self._watchers.find(member):
            return place
        place = ExpectedWatcher(member, role, connections, until=monotonic() + self._ttl)
        self._watchers.expect(place)

        def keep(effects: Effects) -> None:
            effects.records[place_key(place)] = place_record(place)

        await self._changes.submit(keep)
        if self._watchers.find(member) is not place:
            raise Unavailable("the watcher's place ran out before the store had kept it")
        return place

    async def lose(self, places: list[ExpectedWatcher], reason: str) -> None:
        """They are gone, and with them the queues that go with their connections; these may stay, which is logged."""
        for place in places:
            log.info("watcher has no place any more", member=place.member, role=place.role, reason=reason)
            self._watchers.remove(place)
            if place.role == "gateway" and reason == _SILENT:
                self._events.publish(GatewayLost(gateway=place.member, connections=place.connections))

        def close(effects: Effects) -> None:
            for place in places:
                effects.records[place_key(place)] = None
            prefixes = tuple(place.connections for place in places if place.connections)
            self._topology.close([owner for owner in self._topology.owners if owner.startswith(prefixes)], effects)

        await self._closed(close)

    async def watch_over(self) -> NoReturn:
        """Takes the places of the silent, until cancelled.

        Only while the lease is held: when it is not, watchers may find out that nobody writes, and keep their places.
        """
        while True:
            if not await self._pause():
                self._watchers.renew_all()
            elif self._lease.holds() and (overdue := self._watchers.overdue()):
                await self.lose(overdue, _SILENT)

    async def close_orphans(self) -> None:
        """Connections of gateways that went down together with the store are in nobody's record."""
        await asyncio.sleep(self._ttl)

        def close(effects: Effects) -> None:
            orphans = [owner for owner in self._topology.owners if not self._watchers.covers(owner)]
            self._topology.close(orphans, effects)

        await self._closed(close)

    async def _closed(self, close: Callable[[Effects], None]) -> None:
        try:
            await self._changes.submit(close)
        except BrokerError as error:
            contained("deleting exclusive queues of connections that are gone", error)

    async def _pause(self) -> bool:
        """False when this process itself was held up: then others were not silent, it was deaf."""
        before = monotonic()
        await asyncio.sleep(self._ttl / 4)
        return monotonic() - before < self._ttl / 2
