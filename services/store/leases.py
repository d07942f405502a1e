"""Leases of partitions and roles. An epoch is on disk before any member is told of it; a renewal touches no disk.

A release counts at once and is written later: at worst a restarted store honours the lease for two more times to live.
It also spares members after it was cut off or stood still: if all members were late at once, none loses its leases.

From when a restarted store listens, members have two times to live to find it: they may not know yet that their
connections were the former store's. What their clients settled last is on no disk until they are back.

A store that keeps nothing, or whose folder was replaced by an older one, has forgotten epochs in which members acted,
and frames of those epochs may be under way. So a member that acquires names the epoch it knows, and gets a later one.

Records may be written by themselves, and a change of them may still be under way that a former holder was allowed. The
next holder is told of its lease when that is durable too: then it reads all that was written before it.

A client that finds no store listening at its address concludes that no lease is granted. So a store that ends stops
granting before its address is gone, though it still answers on open connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from itertools import zip_longest

import structlog

from services.common.bus.events import UNHEARD, Events
from services.common.clients.stores import ROLE as STORE
from services.common.clock import Clock
from services.common.errors import CommandInvalid
from services.rpc.store_pb2 import KeepAliveReply, KeepAliveRequest, LeaseTable
from services.store.committer import Committer
from services.store.draft import LIMIT, Draft
from services.store.fencing import Epochs
from services.store.lease_events import acquired, lost, released
from services.store.lease_table import Alive, Table
from services.store.provider import LeaseRow

_LAST = LIMIT - 1  # of the epochs
_EXPIRED = "see in its log why it was silent; others take over by themselves"
_STOOD = "if it comes again, see that the store gets its share of the machine, and that others reach it"
_TO_FIND_IT = 2  # times to live, from when a store listens

log = structlog.get_logger()


UnderWay = Callable[[Collection[str]], Sequence[asyncio.Future[int]]]


def _nothing(_: Collection[str]) -> Sequence[asyncio.Future[int]]:
    return ()


class Leases:
    """The one authority over leases of partitions and roles."""

    def __init__(
        self,
        committer: Committer,
        epochs: Epochs,
        clock: Clock,
        ttl_ms: int,
        events: Events = UNHEARD,
        under_way: UnderWay = _nothing,
    ) -> None:
        """`under_way` gives the changes of records that holders of leases were allowed, and that are not durable."""
        self.under_way = under_way
        self._committer = committer
        self.epochs = epochs
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._events = events
        self._incarnation = 0
        self._table = Table()
        self._heard = clock()  # when any member was
        self._taking: set[str] = set()
        self._seen = 0
        self._changed = asyncio.Event()
        self._awake_at = 0.0  # when `run` looks next, unless it is told to look sooner
        self._sooner = asyncio.Event()
        self._closing = False

    def restore(self, rows: Iterable[LeaseRow], incarnation: int) -> None:
        """Honours what is on disk for one time to live from now, and longer once it listens.

        Table versions exceed all of former incarnations.
        """
        self._incarnation = incarnation
        # The lease of the former writing process counts no more: this process writes now.
        rows = [row._replace(member="") if row.name == STORE else row for row in rows]
        for row in rows:
            self.epochs.restore(row.name, row.epoch)
        self._table.restore(rows, incarnation << 32, self._clock(), self._ttl_ms / 1000)

    def listening(self) -> None:
        """From now on members can reach the store: all get time to find it, as they could not renew before."""
        self._table.renew_all(self._clock(), _TO_FIND_IT)

    def closing(self) -> None:
        """From now on no lease is granted, and no member expires."""
        self._closing = True

    async def keep_alive(self, request: KeepAliveRequest) -> KeepAliveReply:
        """Renews, releases, then acquires free leases; returns when those are durable. Raises CommandInvalid."""
        if not request.member:
            raise CommandInvalid("a member without a name cannot hold leases")
        if any(epoch >= _LAST for epoch in request.acquire_above):
            raise CommandInvalid("an epoch is out of range")
        if request.role != STORE:  # this process hears itself, also while nobody else can be heard
            self._hear()
        self.expire()
        ttl_ms = min(request.ttl_ms or self._ttl_ms, self._ttl_ms)
        if request.leaving:
            self._release(self._table.held_by(request.member))
            self._table.remove(request.member)
        else:
            await self._renew_and_take(request, ttl_ms)
        self._publish()
        return self._table.reply(request.role, ttl_ms, self._incarnation, request.known)

    async def watch(self, role: str) -> AsyncIterator[LeaseTable]:
        """The whole table of `role`, at first and after changes; a slow watcher gets only the latest."""
        seen = -1
        while True:
            changed = self._changed
            if seen != self._table.version:
                table = self._table.published(role)
                seen = table.version
                yield table
            else:
                await changed.wait()

    def expire(self) -> None:
        """Removes members that did not renew in time; their leases are free."""
        if self._closing:
            return
        for member in self._table.expire(self._clock(), self._heard):
            log.warning("member expired, its leases are free", member=member, do=_EXPIRED)
            for row in self._table.held_by(member):
                self._events.publish(lost(row))
        self._publish()

    async def run(self) -> None:
        """Expires members by the clock, for ever; sleeps as long as none can expire."""
        while True:
            self._awake_at = self._next_expiry()
            wait = max(self._awake_at - self._clock(), 0.001)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if math.isinf(wait) else wait):
                    await self._sooner.wait()
            self._sooner.clear()
            self.expire()

    def _next_expiry(self) -> float:
        deadline = self._table.next_deadline()
        # A deadline that has passed waits until any member is heard: only then it is known who is late.
        return math.inf if deadline is None or deadline <= self._clock() else deadline

    def _hear(self) -> None:
        now = self._clock()
        if late := self._table.spare(now, self._heard):
            log.warning("no member was heard for a while, nobody's leases have run out", members=late, do=_STOOD)
        self._heard = now

    def unwritable(self, why: str) -> None:
        """Tells watchers that nothing can be written for now, and why; "" when it can again."""
        self._table.unwritable(why)
        self._publish()

    def unchangeable(self, why: str) -> None:
        """The same of records."""
        self._table.unchangeable(why)
        self._publish()

    def taken(self, rows: list[LeaseRow]) -> None:
        """Acquisitions are on disk."""
        for row in rows:
            self._taking.discard(row.name)
            self._table.put(row)
            self._events.publish(acquired(row))
        self._publish()

    async def _renew_and_take(self, request: KeepAliveRequest, ttl_ms: int) -> None:
        member = request.member
        held = self._table.held_by(member)
        if not self._table.is_alive(member):  # it is late, and no other member has acquired its leases
            for row in held:
                self._events.publish(acquired(row))
        ttl = ttl_ms / 1000
        deadline = self._clock() + ttl
        self._table.renew(member, Alive(request.role, request.address, deadline, ttl))
        if deadline < self._awake_at:
            self._sooner.set()
        self._table.weigh(member, request.loads)
        released = dict(zip_longest(request.release, request.release_epochs[: len(request.release)], fillvalue=0))
        self._release(row for row in held if released.get(row.name, row.epoch + 1) in (0, row.epoch))
        if wanted := [each for each in _asked(request, member) if self._may_take(each.name)]:
            await self._take(wanted)

    async def _take(self, wanted: list[LeaseRow]) -> None:
        for row in wanted:
            self._taking.add(row.name)
            # From here on a former holder that renews is too late.
            self._table.put(LeaseRow(row.name, self.epochs[row.name]))
        work = Acquisition(self, wanted)
        self._committer.submit(work)
        await asyncio.shield(work.done)

    def _may_take(self, name: str) -> bool:
        return not self._closing and name not in self._taking and self._table.is_free(name)

    def _release(self, held: Iterable[LeaseRow]) -> None:
        rows = []
        for row in held:
            self._events.publish(released(row))
            rows.append(LeaseRow(row.name, self.epochs[row.name]))
            self._table.put(rows[-1])
        if rows:
            self._committer.submit(Release(rows))

    def _publish(self) -> None:
        if self._seen != self._table.version:
            self._seen = self._table.version
            self._changed.set()
            self._changed = asyncio.Event()


def _asked(request: KeepAliveRequest, member: str) -> Iterable[LeaseRow]:
    """The leases that a member asks for, each with the epoch that it knows of."""
    above = dict.fromkeys(request.acquire, 0)
    above.update(zip(request.acquire, request.acquire_above, strict=False))
    return [LeaseRow(name, epoch, member, request.role, request.address) for name, epoch in above.items()]


class Acquisition:
    """Acquired leases on their way to the disk; at first their rows have the epochs that the members know of."""

    def __init__(self, leases: Leases, rows: list[LeaseRow]) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._leases = leases
        self._rows = rows
        self._before: Sequence[asyncio.Future[int]] = ()

    def prepare(self, draft: Draft) -> None:
        self._rows = [row._replace(epoch=self._leases.epochs.advance(row.name, row.epoch)) for row in self._rows]
        self._before = self._leases.under_way({row.name for row in self._rows})
        draft.changes.leases.update((row.name, row) for row in self._rows)

    def written(self) -> None:
        if left := [change for change in self._before if not change.done()]:
            asyncio.gather(*left, return_exceptions=True).add_done_callback(lambda _: self._tell())
        else:
            self._tell()

    def _tell(self) -> None:
        self._leases.taken(self._rows)
        self.done.set_result(None)


class Release:
    """Released leases on their way to the disk."""

    def __init__(self, rows: list[LeaseRow]) -> None:
        self._rows = rows

    def prepare(self, draft: Draft) -> None:
        draft.changes.leases.update((row.name, row) for row in self._rows)

    def written(self) -> None:
        """Does nothing: the release counted when it was asked for."""
