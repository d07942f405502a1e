"""Files the ledger: takes batches from the bus, and acknowledges them when their rows are on disk.

Everything that touches files happens in one thread of its own, in small pieces with rests between them. All that goes
wrong, filing begins anew with what is on disk: the bus gives again what was not acknowledged, and what was filed all
the same is known by its row numbers.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import structlog
from google.protobuf.message import DecodeError
from nats.aio.msg import Msg

from services.common import disk
from services.common.bus.address import bus_address
from services.common.bus.nats_link import Away
from services.common.clients.store import StoreClient
from services.common.clock import Epoch, epoch_ns, monotonic
from services.common.config import Settings
from services.common.ledger.stream import NO_ROOM
from services.common.plugins import UnknownPlugin
from services.common.runtime import Tasks
from services.mgmt.ledger.cabinet import Cabinet, Change
from services.mgmt.ledger.drawer import Drawer, Tables
from services.mgmt.ledger.feed import AT_ONCE, Feed
from services.mgmt.ledger.instances import HEARD_AGAIN, Gap, Instances
from services.mgmt.ledger.joined import together
from services.mgmt.ledger.lease import FilingLease, LeaseEnded
from services.mgmt.ledger.pace import Pace, Rest
from services.mgmt.ledger.probe import away
from services.mgmt.ledger.tidying import Limits, Tidying
from services.rpc.ledger_pb2 import LedgerBatch

if TYPE_CHECKING:
    from services.mgmt.ledger.decode import Rows

log = structlog.get_logger()

T = TypeVar("T")

_MANY = 200_000  # rows that are filed before their time
_WAIT = 2.0  # seconds for batches
_GATHER = 1.0  # seconds in which batches come together
_AGAIN = 1.0
_TIDY_SECONDS = 60.0
_LOW_SECONDS = 5.0  # between looks whether there is room again
_QUIET = 15.0  # seconds without a batch, of which services tell one in ten seconds at least: NATS may not take them
_LEAST_STREAM = 1 << 20  # bytes of rows that NATS keeps meanwhile, where it shares the disk
# Seconds of rests at most, so that nothing is kept waiting for long: the commit by its lease, batches by a merge.
_RESTS = 1.0
_RESTS_TO_TIDY = 5.0
_LAST_WORDS = 5.0
_NO_SPACE = "no space left"  # JetStream has no code for it
_BUS_FULL = "NATS cannot write the record of messages: make room on its disk, it goes on by itself"
_STORE_SILENT = "the store does not answer, which says who files: see that it runs, and is not held up by its disk"
_LOW = "make room on its disk, or keep less: HOPLINE_LEDGER_BYTES, HOPLINE_LEDGER_DAYS"
_MEND = "see to what the reason says, if it lasts; it goes on by itself"
_ANEW = "the store did not answer for a while; what was told since then is being read"
_UNREADABLE = (DecodeError, ValueError, LookupError, UnknownPlugin)


class Filer:
    """One for each mgmt process; of several, one files."""

    def __init__(self, settings: Settings, store: StoreClient, member: str) -> None:
        """`member` is another one at each start."""
        self._settings = settings
        self._address = bus_address(settings) if settings.ledger else ""
        self._lease = FilingLease(store, member, settings.lease_ttl_ms, self._forget)
        self._pace = Pace()
        self._now = Epoch()
        self._behind = False
        self._cabinet = Cabinet(settings.data / "ledger", self._pace.rest)
        limits = Limits(settings.ledger_days, settings.ledger_bytes, settings.capture_days, settings.capture_bytes)
        self._tidying = Tidying(self._cabinet, limits, self._pace.rest)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._drawer = Drawer()
        self._trouble = self._said = ""
        self._doubts = False  # whether NATS took nothing when it was asked last
        self._instances = Instances()
        self._filed: dict[str, Any] = {}  # what was known of the instances at the last filing
        self._stopping = asyncio.Event()
        self._tasks = Tasks()

    def pending(self) -> Tables:
        """Rows that are not in files yet, by table; none where another process files."""
        return self._drawer.tables()

    @property
    def trouble(self) -> str:
        """Why nothing is filed at the moment, where that is so."""
        if self._address and self._lease.in_doubt:
            return _STORE_SILENT
        # The process that has the lease now says itself what is amiss.
        return "" if self._lease.is_anothers else self._trouble

    def unended(self, service: str) -> set[str]:
        """Instances of which more is to come, for all that is known; none where another process files."""
        return set() if self._lease.is_anothers else self._instances.unended(service)

    def _forget(self) -> None:
        """The bus gives to the process that files now what is not filed."""
        self._drawer = Drawer()

    def start(self) -> None:
        """Files from now on, whenever there is a bus and no other process files."""
        if self._address:
            self._tasks.start(self._run(), "file the ledger")

    async def stop(self) -> None:
        """Files what has come."""
        self._stopping.set()
        self._pace.hurry()
        await self._tasks.finish(_LAST_WORDS if self._lease.holds() else 0)
        if self._address:
            await self._lease.stop()
        await asyncio.to_thread(self._thread.shutdown)

    async def _run(self) -> None:
        await self._lease.start()
        while not self._stopping.is_set():
            await self._lease.held()
            self._forget()  # the bus gives it again; until now it was offered, whatever kept it from being filed
            try:
                await self._session()
            except (Away, LeaseEnded, OSError, ValueError) as failure:
                self._trouble = self._told(failure)
                if self.trouble not in {"", self._said}:
                    self._said = self.trouble
                    log.warning("the ledger is not filed at the moment", reason=self._said, do=_MEND)
                await asyncio.sleep(_LOW_SECONDS if self._low() else _AGAIN)

    async def _session(self) -> None:
        instances = Instances(await self._in_thread(self._cabinet.open), self._cabinet.told)
        self._filed, self._instances = instances.state, instances
        while self._low() and await self._carry_out(self._tidying.give_way):
            log.warning("low on disk: the oldest hour of the ledger gives way to messages", do=_LOW)
        bounds = self._bounds()
        async with await Feed.open(self._address, bounds) as feed:
            self._require_room()
            session = _Session(feed, self._drawer, instances, self._now)
            instances.listen_again(monotonic())
            session.heard_at = monotonic() - (_QUIET if self._doubts else 0)
            began = tidied = monotonic()
            while True:
                self._lease.require()
                self._require_room()
                if bounds != self._bounds():
                    bounds = self._bounds()
                    await feed.limit(bounds)
                last = self._stopping.is_set()
                await self._receive(session, 0.1 if last else _WAIT)
                due = last or session.is_due(monotonic() - began, self._settings.ledger_seconds)
                if due and self._lease.holds():
                    began = monotonic()
                    await self._file(session)
                if last:
                    return
                if monotonic() - session.heard_at >= _QUIET:
                    await self._require_taking(session)
                if monotonic() - tidied >= _TIDY_SECONDS:
                    tidied = tidied if await self._tidy() else monotonic()

    def _low(self) -> bool:
        return self._is_low(self._cabinet.folder)

    def _is_low(self, folder: Path) -> bool:
        return disk.must_give_way(self._settings.disk_reserve, disk.room(folder))

    def _require_room(self) -> None:
        if self._low():
            raise OSError(errno.ENOSPC, "low on disk, the record of messages gives way to them")

    def _bounds(self) -> Settings:
        shares = self._settings.data / "nats"  # the server of `hopline up`
        low = shares.is_dir() and self._is_low(shares)
        return self._settings.model_copy(update={"ledger_stream_bytes": _LEAST_STREAM} if low else {})

    async def _require_taking(self, session: _Session) -> None:
        """A stream whose disk was full takes nothing ever after: files what is in it, then makes another one."""
        self._doubts = not await session.feed.takes()
        session.heard_at = monotonic()
        if self._doubts:
            # What it still has goes with it.
            await self._receive(session, _WAIT)
            while self._behind:
                await self._receive(session, _WAIT)
            await self._file(session)
            self._lease.require()
            await session.feed.renew(self._bounds())
            raise Away(_BUS_FULL)

    def _told(self, failure: Exception) -> str:
        if isinstance(failure, LeaseEnded):
            return _ANEW
        if isinstance(failure, Away) and _NO_SPACE in str(failure):
            return _BUS_FULL
        if isinstance(failure, Away) and str(failure) not in {_BUS_FULL, NO_ROOM}:
            return away(failure)
        if not isinstance(failure, OSError) or failure.errno != errno.ENOSPC:
            return str(failure)
        return f"{failure.strerror}: make room for {self._cabinet.folder} of mgmt, it goes on by itself"

    async def _receive(self, session: _Session, seconds: float) -> None:
        messages = await session.feed.next(seconds)
        self._behind = len(messages) >= AT_ONCE
        self._pace.allow(0 if self._behind else _RESTS)
        for part in await self._in_thread(_read, messages, self._pace.rest):
            is_new = [session.accept(message, batch) for message, batch in part.batches]
            rows = part.rows
            if not all(is_new):
                some = [batch for (_, batch), new in zip(part.batches, is_new, strict=True) if batch and new]
                rows = await self._in_thread(_rows, some, self._pace.rest)
            session.put(rows)
        if not self._behind:
            session.listen()
            # What comes in a second is taken at once: asking costs more than what a batch does.
            await asyncio.sleep(_GATHER if messages and seconds > _GATHER else 0)

    async def _file(self, session: _Session) -> None:
        messages, state, told = session.take_messages(), session.instances.state, session.instances.told
        tables = await self._in_thread(self._drawer.take)
        if tables or state != self._filed or self._cabinet.is_stale:
            self._pace.allow(0 if self._behind else _RESTS)
            change = await self._in_thread(self._cabinet.prepare, tables)
            self._lease.require()
            await self._in_thread(self._cabinet.commit, change, state, told)
            self._filed = state
        self._drawer.done()
        await session.feed.acknowledge(messages)
        self._trouble = self._said = ""

    async def _tidy(self) -> bool:
        """Does one thing; False when there was nothing to do."""
        self._pace.allow(0 if self._behind else _RESTS_TO_TIDY)
        return await self._carry_out(self._tidying.prepare, self._now() / 1000)

    async def _carry_out(self, prepare: Callable[..., Change | None], *arguments: object) -> bool:
        change = await self._in_thread(prepare, *arguments)
        if change:
            self._lease.require()
            await self._in_thread(self._tidying.carry_out, change)
        return bool(change)

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)


class _Session:
    """What has come since the bus was found, and is not acknowledged."""

    def __init__(self, feed: Feed, drawer: Drawer, instances: Instances, now: Epoch) -> None:
        self.feed = feed
        self._now = now
        self.instances = instances
        self._drawer = drawer
        self._messages: list[Msg] = []
        self.heard_at = monotonic()

    def is_due(self, passed: float, seconds: float) -> bool:
        """Whether there is something to be filed or acknowledged now."""
        return bool(self._messages or self._drawer.rows) and (passed >= seconds or self._drawer.rows >= _MANY)

    def accept(self, message: Msg, batch: LedgerBatch | None) -> bool:
        """A batch, or None for one that cannot be decoded. Whether it was not heard before."""
        self._messages.append(message)
        self.heard_at = monotonic()
        if batch is None:
            service, instance = message.subject.split(".")[-2:]
            log.error(
                "a batch of the ledger cannot be read, its rows are missing",
                instance=instance,
                do="run one release of Hopline everywhere: mgmt may be older than the process that sent it",
            )
            since = self.instances.told_until(instance)
            self._drawer.put_gap(Gap(service, instance, 0, 0, -1, "unreadable", since), _now_us())
            return True
        is_new, gaps = self.instances.heard(batch, monotonic(), self._now() / 1000)
        for gap in gaps:
            _log_noticed(gap)
            self._drawer.put_gap(gap, _now_us())
        return is_new

    def put(self, rows: Rows | None) -> None:
        """Those of batches that were not heard before."""
        if rows and (rows.stages.num_rows or rows.payloads.num_rows):
            self._drawer.put(rows)

    def listen(self) -> None:
        """No batch is on its way: an instance that is silent now has sent nothing."""
        for gap in self.instances.silent(monotonic(), self._now() / 1000):
            log.warning(
                "a process was killed, or is cut off from NATS; what it did last may not be on record",
                program=gap.service,
                instance=gap.instance,
                do="see in its log how it ended, or why it does not reach NATS; look-ups say where rows are missing",
            )
            self._drawer.put_gap(gap, _now_us())

    def take_messages(self) -> list[Msg]:
        """Those whose rows are filed now."""
        messages, self._messages = self._messages, []
        return messages


def _log_noticed(gap: Gap) -> None:
    if gap.reason == HEARD_AGAIN:
        log.info("an instance that was missed is heard again, what it had to tell has come", instance=gap.instance)
        return
    log.warning(
        "rows of the ledger are missing, look-ups say where",
        instance=gap.instance,
        rows=gap.rows,
        do="if NATS was away for long, give processes a larger HOPLINE_LEDGER_BUFFER",
    )


class _Part(NamedTuple):
    """Messages that were decoded together, each with its batch, or None where it cannot be read; and all their rows."""

    batches: list[tuple[Msg, LedgerBatch | None]]
    rows: Rows | None


def _read(messages: Sequence[Msg], rest: Rest) -> list[_Part]:
    batches = [_parsed(message) for message in messages]
    rest()
    behind = iter(messages)
    parts: list[_Part] = []
    for some in together(batches):
        parts += _decoded([(next(behind), batch) for batch in some], rest)
    return parts


def _decoded(batches: list[tuple[Msg, LedgerBatch | None]], rest: Rest) -> list[_Part]:
    """Together; where one cannot be read, each by itself."""
    try:
        return [_Part(batches, _rows([batch for _, batch in batches if batch], rest))]
    except _UNREADABLE:
        if len(batches) == 1:
            return [_Part([(batches[0][0], None)], None)]
        return [part for each in batches for part in _decoded([each], rest)]


def _parsed(message: Msg) -> LedgerBatch | None:
    try:
        return LedgerBatch.FromString(message.data)
    except DecodeError:
        return None


def _rows(batches: Sequence[LedgerBatch], rest: Rest) -> Rows | None:
    """None for batches without any: an instance without rows sends an empty one, every ten seconds."""
    told = [each for each in batches if each.stages or each.ranges or each.firsts or each.captured]
    if not told:
        return None
    # Not before there is a row: Arrow takes memory and time.
    from services.mgmt.ledger.decode import decode  # noqa: PLC0415

    return decode(told, rest)


def _now_us() -> int:
    return epoch_ns() // 1000
