"""The store without its wire: its parts, put together over a provider and restored from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from services.common.bus.events import UNHEARD, Events
from services.common.clock import Clock
from services.common.errors import InternalError
from services.common.runtime import Tasks
from services.rpc.store_pb2 import KeepAliveReply, KeepAliveRequest
from services.store.commit_spans import CommitSpans
from services.store.commit_times import CommitTimes
from services.store.committer import Committer
from services.store.disk import Disk
from services.store.fencing import Epochs
from services.store.housekeeping import Housekeeping
from services.store.journal import Journal
from services.store.leases import Leases
from services.store.live import Live
from services.store.moving.mark import mark_in, unfinished
from services.store.origins import Origins
from services.store.provider import Elsewhere, Parted, Provider, RecordRow
from services.store.records import Records
from services.store.running import RunningTime, Unkept
from services.store.transactions import Transactions


class Engine:
    """Owns the provider between `start` and `stop`."""

    def __init__(
        self,
        provider: Provider,
        lease_ttl_ms: int,
        clock: Clock,
        on_failure: Callable[[BaseException], None],
        events: Events = UNHEARD,
        spans: CommitSpans | None = None,
        disk_reserve: int = 0,
        times: CommitTimes | None = None,
    ) -> None:
        """`on_failure` is called when one of the loops ends, which is a bug: nothing would be answered any more.

        `disk_reserve` as HOPLINE_DISK_RESERVE.
        """
        self.provider = provider
        self._on_failure = on_failure
        self.incarnation = 0
        self.epochs = Epochs()
        self._live = Live()
        self._tasks = Tasks(on_failure)
        self._running = RunningTime(clock)
        trouble: Callable[[], str] = str
        self.sure: Callable[[], Awaitable[None]] = _sure
        if isinstance(provider, Elsewhere):
            trouble, self.sure = provider.trouble, provider.sure
            provider.watch(on_failure)
        self.disk = self._disk = Disk(provider.room, disk_reserve, self._tell_unwritable, trouble, clock)
        self._committer = Committer(provider, self._disk, self._live, self._running, spans, times)
        self._disks, self._recording = [self._disk], self._committer
        if isinstance(provider, Parted):
            self._disks.append(self._disk_of_records(provider, clock))
            self._recording = Committer(provider, self._disks[-1], self._live, Unkept(self._running), times=times)
        self.records = Records(self._recording, self.epochs)
        self.leases = Leases(self._committer, self.epochs, clock, lease_ttl_ms, events, self.records.under_way)
        self.origins = Origins(self._committer)
        self.transactions = Transactions(self._committer, self.epochs)
        self.journal = Journal(self._committer, self.epochs, self.transactions)
        self._housekeeping = Housekeeping(
            provider, self._disks, self._committer, self._live, self.transactions, self._running
        )

    async def start(self) -> None:
        """Reads back the provider's data and begins to commit. Raises InternalError when the data cannot be used."""
        await self.provider.open()
        self.incarnation = await self.provider.begin_incarnation()
        self._running.restore(await self.provider.running())
        self._live.restore(await self.provider.live())
        self.journal.restore(await self.provider.writers(), await self.provider.refusals())
        self.transactions.restore(await self.provider.outcomes())
        self.origins.restore(await self.provider.last_origin())
        self.records.restore(await self._records(), self.incarnation)
        self.leases.restore(await self.provider.leases(), self.incarnation)
        for disk in self._disks:
            disk.look()
        self._tasks.start(self._committer.run(), "commit")
        if self._recording is not self._committer:
            self._tasks.start(self._recording.run(), "commit of records")
        self._tasks.start(self.leases.run(), "lease expiry")
        self._tasks.start(self._housekeeping.run(), "housekeeping")

    async def _records(self) -> list[RecordRow]:
        rows = await self.provider.records()
        if mark := mark_in(rows):
            await self.provider.close()
            raise InternalError(unfinished(mark))
        return rows

    async def keep_alive(self, request: KeepAliveRequest) -> KeepAliveReply:
        """As Leases says, by one who writes: another may have given these leases to others."""
        await self.sure()
        return await self.leases.keep_alive(request)

    def succeeded(self, member: str, incarnation: int) -> None:
        """`member` says that it writes, since that start: one that is cut off from its provider could not know.

        Of one that is as old as this process, or older, it is not true any more.
        """
        if incarnation > self.incarnation:
            self._on_failure(InternalError(f"another store process, {member}, says that it writes by now"))

    def _tell_unwritable(self, why: str) -> None:
        self.leases.unwritable(why)

    def _disk_of_records(self, provider: Parted, clock: Clock) -> Disk:
        """Where records are kept by themselves: nobody publishes to it, so how much room it has is not asked."""

        def tell(why: str) -> None:
            self.leases.unchangeable(why)

        return Disk(lambda: None, 0, tell, provider.trouble_with_records, clock, "changes of configuration")

    async def stop(self) -> None:
        """Ends; writes that were not acknowledged may be on disk or not."""
        await self._tasks.stop()
        await self.provider.close()


async def _sure() -> None:
    """`sure` of a provider for one process: no other can write."""
