"""Giving and taking places: kept as records, so that the next router waits for the same watchers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NoReturn

import structlog

from services.common.bus.events import Events
from services.common.bus.facts import GatewayLost
from services.common.clock import monotonic
from services.common.containment import contained
from services.common.errors import BrokerError, Unavailable
from services.router.changes import Changes
from services.router.lease import Lease
from services.router.silent import Silent
from services.router.topology.effects import Effects
from services.router.topology.topology import Topology
from services.router.watchers import ExpectedWatcher, Watchers, place_key, place_record

_SILENT = "silent"
_DO = "see in its log how it ended; end one that stands still, so that its clients connect to others"

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
        self.silent = Silent(monotonic)

    async def take(self, member: str, role: str, connections: str) -> ExpectedWatcher:
        """The place of a watcher that is known, or a new one as soon as it is kept; raises Unavailable."""
        if place := self._watchers.find(member):
            return place
        place = ExpectedWatcher(member, role, connections, until=monotonic() + self._ttl)
        self._watchers.expect(place)

        def keep(effects: Effects) -> None:
            effects.records[place_key(place)] = place_record(place)
            self.silent.take_off([member], effects)

        await self._changes.submit(keep)
        self.silent.forget([member])
        if self._watchers.find(member) is not place:
            raise Unavailable("the watcher's place ran out before the store had kept it")
        return place

    async def lose(self, places: list[ExpectedWatcher], reason: str) -> None:
        """They are gone, and with them the queues that go with their connections; these may stay, which is logged."""
        # Looked up here: without its place a watcher has no stream either.
        may_stand_still = [place for place in places if reason == _SILENT and not place.is_cut_off]
        for place in places:
            is_lost = place.role == "gateway" and reason == _SILENT  # of other roles those say more who call them
            say = partial(log.warning, do=_DO) if is_lost else log.info
            say("watcher has no place any more", member=place.member, role=place.role, reason=reason)
            self._watchers.remove(place)
            if is_lost:
                self._events.publish(GatewayLost(gateway=place.member, connections=place.connections))

        def close(effects: Effects) -> None:
            for place in places:
                effects.records[place_key(place)] = None
            self.silent.fell(may_stand_still, effects)
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
            elif self._lease.holds() and (over := self.silent.over()):
                await self._take_off(over)

    async def _take_off(self, silent: list[str]) -> None:
        if await self._closed(partial(self.silent.take_off, silent)):
            self.silent.forget(silent)

    async def close_orphans(self) -> None:
        """Connections of gateways that went down together with the store are in nobody's record."""
        await asyncio.sleep(self._ttl)

        def close(effects: Effects) -> None:
            orphans = [owner for owner in self._topology.owners if not self._watchers.covers(owner)]
            self._topology.close(orphans, effects)

        await self._closed(close)

    async def _closed(self, close: Callable[[Effects], None]) -> bool:
        """Whether it is kept; if not, that is logged."""
        try:
            await self._changes.submit(close)
        except BrokerError as error:
            contained("writing down which watchers are gone, and deleting their exclusive queues", error)
            return False
        return True

    async def _pause(self) -> bool:
        """False when this process itself was held up: then others were not silent, it was deaf."""
        before = monotonic()
        await asyncio.sleep(self._ttl / 4)
        return monotonic() - before < self._ttl / 2
