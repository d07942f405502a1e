"""Membership and leases of one process: renewed well before they can run out, and believed no longer than that.

Validity is counted on the monotonic clock from the moment when a successful request was sent. That clock counts a
suspend of the machine, the event loop's timers do not: code that acts under a lease calls `check` when it acts.

A busy store answers late, and a late answer is as good as any: what it grants ends one time to live after its request
was sent, so the process waits for it until then. Meanwhile it sends the same request again beside the first, which may
be lost; whichever is answered first ends the waiting. The store may carry out the older one last. That does no harm: no
lease is acquired twice, and a release names its epoch, so that it cannot take back a lease that a newer request got.

When the store's process is gone for certain (it was on this machine, and nothing listens at its address), no other
process can be granted a lease either, and a restarted store honours the leases on its disk for a time to live, or two,
from when it listens: validity is counted from then. A connection that is refused over a network proves nothing.

A restarted store may grant a shorter time than the one before it, and drops members that are silent for longer: what
the latest answer grants counts, though an earlier one granted more.

A lease can come back in an epoch that this process had lost: the end was not on disk yet when the store died. Messages
of that epoch may be under way still, and would be accepted after the partition's recovery. So the process releases the
lease and asks for it anew: an epoch that ended never begins again. Nor does an epoch of another process, in a store
that has forgotten it: a request for a lease names the highest epoch of it that this process ever heard of.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

import structlog

from services.common.clients.reachable import is_gone
from services.common.clients.unrenewed import Unrenewed
from services.common.clock import Clock, monotonic, until_next
from services.common.containment import by_itself, contained
from services.common.errors import BrokerError, Unavailable
from services.common.runtime import Tasks
from services.rpc import store_pb2 as pb

# Parts of the granted time to live, counted from a request: when the next one is sent, so that the larger part is left
# for its answer; when it is sent at the latest, as processes that wake up together may wait a little for each other …
_RENEWAL = 0.4
_LATEST = 0.44
# … and how long a request stays without an answer before another one is sent beside it.
_ANSWER = 1 / 4
_RETRY_SECONDS = 0.05

log = structlog.get_logger()


class LeaseStore(Protocol):
    """The part of the store's client that leases need."""

    def keep_alive(self, request: pb.KeepAliveRequest, timeout: float = ...) -> Awaitable[pb.KeepAliveReply]: ...


class LeaseListener(Protocol):
    """Acts on the leases."""

    def renewed(self, held: dict[str, int], reply: pb.KeepAliveReply) -> None:
        """After every answer: what is held now, with its epochs; may call `acquire` and `release`."""

    def validity_changed(self, *, valid: bool) -> None:
        """Not valid: nothing may be done for the leases until they are renewed or found lost."""


class Leases:
    """Keeps a process a member of `role`. `member` must be another one at each start."""

    def __init__(
        self,
        store: LeaseStore,
        store_address: str,
        member: str,
        role: str,
        address: str,
        ttl_ms: int,
        listener: LeaseListener,
        clock: Clock = monotonic,
        is_gone: Callable[[str], Awaitable[bool]] = is_gone,
    ) -> None:
        self.member = member
        self._store = store
        self._store_address = store_address
        self._role = role
        self._address = address
        self._ttl_ms = ttl_ms
        self._listener = listener
        self._clock = clock
        self._is_gone = is_gone
        self._acquire: set[str] = set()
        self._release: dict[str, int] = {}
        self._asked: set[str] = set()
        self._told = pb.KeepAliveReply()
        self._told_at = 0.0
        self._held: dict[str, int] = {}
        self._ended: dict[str, int] = {}  # lease → the last epoch in which this process has lost it
        self._highest: dict[str, int] = {}  # lease → the highest epoch that this process heard of, of any owner
        self._granted = ttl_ms / 1000  # the store may give less than was asked for …
        self._since = 0.0  # … and counts from the sending of the latest request that was answered
        self._valid_until = 0.0
        self._valid = False
        self._waits = False  # the log says that this process waits for the store
        self._unrenewed = Unrenewed(role, clock)
        self.loads: Callable[[], list[pb.LeaseLoad]] = list
        """Called before each renewal; gives the loads that have changed."""
        self._now = asyncio.Event()
        self._tasks = Tasks()
        self._watchdog: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Returns when the store knows this member; waits for the store as long as it takes."""
        while not await self._beat():
            pass
        self._tasks.start(self._run(), "leases")

    async def stop(self) -> None:
        """Releases all leases and the membership; best effort."""
        await self._tasks.stop()
        if self._watchdog:
            self._watchdog.cancel()
        request = pb.KeepAliveRequest(member=self.member, role=self._role, leaving=True)
        with contextlib.suppress(BrokerError):
            await self._store.keep_alive(request, timeout=self._ttl_ms / 1000)

    def serve_at(self, address: str) -> None:
        """Tells the store at once the address at which this member serves; without one it counts as joining."""
        self._address = address
        self._now.set()

    def acquire(self, names: Iterable[str]) -> None:
        """Asks at once for leases that are free; `renewed` tells which of them were granted."""
        self._acquire.update(names)
        # A lease that was just refused is asked for again with the next renewal.
        if self._acquire - self._asked:
            self._now.set()

    def release(self, held: Mapping[str, int]) -> None:
        """Gives leases back at once, in the given epochs; the caller has stopped acting for them."""
        self._release.update(held)
        self._now.set()

    def heard_of(self, epochs: Iterable[tuple[str, int]]) -> None:
        """Some process holds, or held, leases in these epochs: this process accepts only higher ones."""
        for name, epoch in epochs:
            self._highest[name] = max(epoch, self._highest.get(name, 0))

    def refresh(self) -> None:
        """Renews at once: the lease table may have changed."""
        self._now.set()

    def check(self) -> bool:
        """Whether the leases are valid at this moment; tells the listener if they have run out unnoticed."""
        if self._valid and self._clock() >= self._valid_until:
            self._set_valid(valid=False)
        return self._valid

    async def _run(self) -> None:
        while True:
            try:
                await self._until_due()
                while not await self._beat():
                    pass
            except Exception as fault:  # noqa: BLE001 - without this task all leases run out, and stay so
                contained("renewing leases", fault)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _until_due(self) -> None:
        latest = self._valid_until - self._granted * (1 - _LATEST) - self._clock()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(until_next(self._granted * _RENEWAL), max(latest, 0.0))):
                await self._now.wait()
        self._now.clear()

    async def _beat(self) -> bool:
        request = self._question()
        heard: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._tasks.start(self._ask(request, heard), "renewing leases")
        beside = self._tasks.start(self._ask_again(request, heard), "renewing leases beside")
        try:
            return await heard
        except BrokerError as failure:
            self._release = {**dict(zip(request.release, request.release_epochs, strict=True)), **self._release}
            await self._unanswered(failure)
            await asyncio.sleep(_RETRY_SECONDS)
            return False
        finally:
            beside.cancel()  # its answer still counts

    async def _ask(self, request: pb.KeepAliveRequest, heard: asyncio.Future[bool]) -> None:
        sent = self._clock()
        try:
            # An answer that comes after the granted time has run out is worth nothing.
            reply = await self._store.keep_alive(request, timeout=self._granted)
            answered = self._answered(sent, request, reply)
        except Exception as fault:  # noqa: BLE001 - whatever the fault, `_beat` must ask again
            if not heard.done():
                heard.set_exception(_failure(fault))
        else:
            if not heard.done():
                heard.set_result(answered)

    def _question(self) -> pb.KeepAliveRequest:
        acquire, self._acquire = self._acquire, set()
        release, self._release = self._release, {}
        self._asked = acquire
        return pb.KeepAliveRequest(
            member=self.member, role=self._role, address=self._address, ttl_ms=self._ttl_ms,
            acquire=acquire, acquire_above=[self._highest.get(name, 0) for name in acquire],
            release=release.keys(), release_epochs=release.values(),
            loads=self._changed_loads(), known=self._told.version,
        )  # fmt: skip

    def _changed_loads(self) -> list[pb.LeaseLoad]:
        loads: list[pb.LeaseLoad] = []
        by_itself("telling the store the loads of leases", lambda: loads.extend(self.loads()))
        return loads

    async def _ask_again(self, request: pb.KeepAliveRequest, heard: asyncio.Future[bool]) -> None:
        """Sends the request again and again until it is answered."""
        while True:
            seconds = self._granted * _ANSWER
            await asyncio.sleep(seconds)
            gone = await self._unanswered(Unavailable(f"the store did not answer within {seconds:.2g} s"))
            # A joining member has no lease to lose yet. A copy of its request that came late would seem to join again.
            if request.address and not gone:
                self._tasks.start(self._ask_beside(request, heard), "renewing leases beside")

    async def _ask_beside(self, request: pb.KeepAliveRequest, heard: asyncio.Future[bool]) -> None:
        sent = self._clock()
        with contextlib.suppress(BrokerError):  # any other fault is logged, and ends only this
            reply = await self._store.keep_alive(request, timeout=self._granted)
            if self._answered(sent, request, reply) and not heard.done():
                heard.set_result(True)

    def _answered(self, sent: float, request: pb.KeepAliveRequest, reply: pb.KeepAliveReply) -> bool:
        """False when the answer comes too late: the leases have run out, and another process may hold them by now."""
        self._unrenewed.renewed()
        self._believe(sent, reply.ttl_ms / 1000)
        if not self._valid:
            return False
        if self._is_news(sent, request, reply):
            self._told, self._told_at = reply, self._clock()
            self._note_held()
        by_itself("acting on renewed leases", lambda: self._listener.renewed(dict(self._held), self._told))
        return True

    def _note_held(self) -> None:
        """Releases leases that came back in an epoch that had ended, and takes them out of the answer."""
        self.heard_of((lease.name, lease.epoch) for lease in self._told.leases)
        held = {lease.name: lease.epoch for lease in self._told.leases if lease.member == self.member}
        self._ended.update((name, epoch) for name, epoch in self._held.items() if held.get(name) != epoch)
        again = {name: epoch for name, epoch in held.items() if epoch <= self._ended.get(name, 0)}
        self._held = {name: epoch for name, epoch in held.items() if name not in again}
        if again:
            others = [lease for lease in self._told.leases if lease.name not in again]
            del self._told.leases[:]
            self._told.leases.extend(others)
            log.info("leases are back that were lost, they are asked for anew", leases=sorted(again))
            self.release(again)

    def _is_news(self, sent: float, request: pb.KeepAliveRequest, reply: pb.KeepAliveReply) -> bool:
        """False for what is known, or what the store said before it: parallel requests are answered in any order."""
        if request.known and reply.version == request.known:
            return False
        return sent >= self._told_at or reply.version >= self._told.version

    async def _unanswered(self, failure: BrokerError) -> bool:
        """Logs it; gives whether the store is gone for certain. In that case the leases stay valid."""
        asked, granted = self._clock(), self._granted
        gone = await self._is_gone(self._store_address)
        if gone and self.check():
            self._believe(asked, min(granted, self._granted))
        if self._valid_until and not gone:
            self._unrenewed.missed(failure)
        elif not self._valid_until and not self._waits:
            self._waits = True
            log.info("waiting for the store", role=self._role, address=self._store_address)
        return gone

    def _believe(self, asked: float, granted: float) -> None:
        """Leases hold for `granted` from `asked` on; the answer to an older request can only shorten that."""
        # The listener must hear that leases had run out, though no check noticed it: others may have acted on it.
        self.check()
        # An older request may have reached the store's successor, which grants less, once its predecessor had ended.
        self._granted = granted if asked >= self._since else min(granted, self._granted)
        self._since = max(asked, self._since)
        self._valid_until = self._since + self._granted
        self._watch()
        if not self.check() and self._clock() < self._valid_until:
            self._set_valid(valid=True)

    def _watch(self) -> None:
        if self._watchdog:
            self._watchdog.cancel()
        # What is granted ends at that moment itself, so its last tick is not used.
        delay = max(self._valid_until - self._clock(), 0.0)
        self._watchdog = asyncio.get_running_loop().call_later(delay, self.check)

    def _set_valid(self, *, valid: bool) -> None:
        self._valid = valid
        by_itself("acting on leases that may have run out", lambda: self._listener.validity_changed(valid=valid))


def _failure(fault: Exception) -> BrokerError:
    return fault if isinstance(fault, BrokerError) else Unavailable(contained("renewing leases", fault).text)
