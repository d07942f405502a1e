"""Loggers as they are on record now, each with what its lines go to; all processes are followed while there are some.

Each management process does that by itself. What the loggers are asked for is of the one that answers.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import structlog

from services.common import plugins
from services.common.clients.store import StoreClient
from services.common.containment import contained
from services.common.errors import BrokerError
from services.common.runtime import Tasks
from services.mgmt.loggers.choosing import Choice
from services.mgmt.loggers.following import Following
from services.mgmt.loggers.kind import LoggerKind, Sink
from services.mgmt.loggers.looked_at import LookedAt
from services.mgmt.loggers.records import (
    BROKER_GROUP,
    HOST_GROUP,
    LOGGER_KIND,
    RULE_KIND,
    LoggerRecord,
    Place,
    RuleRecord,
    logger_in,
    rule_in,
)
from services.mgmt.metrics.gather import Addresses
from services.mgmt.model.faults import IllegalConfiguration
from services.rpc.logs_pb2 import Line
from services.rpc.store_pb2 import Record, Records

_PATIENCE: Final = 3.0  # seconds
_NOT_OPENED: Final = "a logger cannot be opened"
_DO: Final = "mend that, and change the logger: then it is tried again"
_RECENT: Final = 500
"""Lines with which a logger begins when its first rule comes."""

log = structlog.get_logger()


def kind_of(place: Place, type_: str) -> LoggerKind:
    """Of a logger. Raises UnknownPlugin."""
    made: LoggerKind = plugins.load(HOST_GROUP if place.virtual_host else BROKER_GROUP, type_)()
    return made


@dataclass
class OpenLogger:
    """One that takes lines; `sink` is None where it could not be opened, and `trouble` says why."""

    record: LoggerRecord
    sink: Sink | None = None
    trouble: str = ""
    choice: Choice | None = None
    ruled: bool = False
    """Whether it has rules; before, it takes nothing."""
    heard: int = 0
    """Of all lines that the desk got, those that came while it had rules, or before."""
    counts: Counter[str] = field(default_factory=Counter)
    """Of its lines, by level."""

    def take(self, lines: Sequence[Line]) -> None:
        """Those that are for it."""
        if self.choice is None or self.sink is None:
            return
        since = self.sink.since_us
        if taken := [line for line in lines if line.known_us >= since and self.choice.takes(line)]:
            self.counts.update(line.level for line in taken)
            self.sink.take(taken)


class LoggerDesk:
    """Of one management process; `folder` is where files of logs may be."""

    def __init__(self, store: StoreClient, folder: Path) -> None:
        self.folder = folder
        self._store = store
        self._tasks = Tasks()
        self._records: dict[str, dict[str, bytes]] = {LOGGER_KIND: {}, RULE_KIND: {}}
        self._open: dict[Place, OpenLogger] = {}
        self._recent: deque[Line] = deque(maxlen=_RECENT)
        self._count = 0
        self.files = LookedAt(folder, lambda: {place: its.record for place, its in self._open.items()})
        self._changed = asyncio.Event()
        self._following: Following | None = None

    def start(self, addresses: Addresses, ready: Callable[[], Awaitable[None]]) -> None:
        """From now on; `ready` returns when the addresses of other processes are known."""
        self._following = Following(addresses, ready, self._take)
        self._tasks.start(self._follow(self._store.watch_records((LOGGER_KIND, RULE_KIND))), "loggers")

    async def stop(self) -> None:
        """With the lines that have come by then."""
        if self._following:
            await self._following.stop()
        await self.files.stop()
        await self._tasks.stop()
        await self._close(list(self._open))

    def at(self, place: Place) -> OpenLogger | None:
        """What is there, if anything."""
        return self._open.get(place)

    async def opened(self, place: Place, record: LoggerRecord) -> None:
        """Returns when it is as that record says; at last when somebody else has changed it again."""
        await self._until(lambda: (its := self._open.get(place)) is not None and its.record == record)

    async def has(self, kind: str, key: str, value: bytes | None) -> None:
        """The same of any of its records; None: it is gone."""
        await self._until(lambda: self._records[kind].get(key) == value)

    async def _until(self, holds: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                while not holds():
                    await self._changed.wait()
        except TimeoutError:
            return  # the store tells later; what is on record is done

    # -------------------------------------------------------------- records

    async def _follow(self, records: AsyncIterator[Records]) -> None:
        fresh: dict[str, dict[str, bytes]] = {LOGGER_KIND: {}, RULE_KIND: {}}
        async for batch in records:
            _apply(fresh if batch.snapshot else self._records, batch.records)
            if batch.snapshot and batch.last:
                self._records, fresh = fresh, {LOGGER_KIND: {}, RULE_KIND: {}}
            if batch.last or not batch.snapshot:
                await self._become()

    async def _become(self) -> None:
        """As the records say."""
        wanted = {Place(*json.loads(key)): its for key, its in _readable(self._records[LOGGER_KIND], logger_in)}
        await self._close([place for place in self._open if place not in wanted])
        for place, record in wanted.items():
            its = self._open.get(place)
            if its is None or its.record != record:
                self._open[place] = await self._opened(place, record, its)
        self._choose()
        if self._following:
            await self._following.want(bool(self._open))
        self._changed.set()
        self._changed = asyncio.Event()

    async def _opened(self, place: Place, record: LoggerRecord, former: OpenLogger | None) -> OpenLogger:
        made = OpenLogger(record)
        if former:
            made.choice, made.ruled, made.counts = former.choice, former.ruled, former.counts
            made.heard = former.heard
        if former and former.sink:
            await former.sink.close()
        try:
            kind = kind_of(place, record.type)
            said = {**kind.defaults, **record.attributes}
            async with asyncio.timeout(_PATIENCE):
                made.sink = await kind.open(said, self.folder, former.sink if former else None)
        except TimeoutError:
            made.trouble = "its disk does not answer: change the logger to try again"
            log.warning(_NOT_OPENED, logger=place.name, reason=made.trouble, do=_DO)
        except BrokerError as error:
            made.trouble = error.text
            log.warning(_NOT_OPENED, logger=place.name, reason=error.text, do=_DO)
        except Exception as fault:  # noqa: BLE001 - of a plug-in: the others go on
            made.trouble = str(fault)
            contained("opening a logger", fault, logger=place.name)
        return made

    async def _close(self, places: Iterable[Place]) -> None:
        for place in places:
            if (its := self._open.pop(place)).sink:
                await its.sink.close()

    def _choose(self) -> None:
        # By the incarnation of the virtual host, too: rules of a former one count for no logger of the next.
        rules = defaultdict[tuple[Place, str], dict[str, RuleRecord]](dict)
        for key, rule in _readable(self._records[RULE_KIND], rule_in):
            *place, name = json.loads(key)
            rules[Place(*place), rule.host][name] = rule
        for place, its in self._open.items():
            try:
                its.choice = Choice(its.record, place.virtual_host, rules[place, its.record.host], its.choice)
            except IllegalConfiguration as error:
                its.trouble = error.text
            self._begin(its, ruled=bool(rules[place, its.record.host]))

    def _begin(self, its: OpenLogger, *, ruled: bool) -> None:
        """Its first rule has come, or its last has gone: what came before that is not told again by the next."""
        if its.ruled and not ruled:
            its.heard = self._count
        elif ruled and not its.ruled:
            new = min(self._count - its.heard, len(self._recent))
            its.take(list(self._recent)[len(self._recent) - new :])
        its.ruled = ruled

    # -------------------------------------------------------------- lines

    def _take(self, lines: Sequence[Line]) -> None:
        self._recent.extend(lines)
        self._count += len(lines)
        for place, its in self._open.items():
            try:
                its.take(lines)
            except Exception as fault:  # noqa: BLE001 - as above
                contained("taking lines of a logger", fault, logger=place.name)
                if its.sink:
                    self._tasks.start(its.sink.close(), f"closing logger {place.name}")
                its.trouble, its.sink = str(fault), None


def _apply(into: Mapping[str, dict[str, bytes]], records: Iterable[Record]) -> None:
    for record in records:
        if record.deleted:
            into[record.kind].pop(record.key, None)
        else:
            into[record.kind][record.key] = record.value


def _readable(records: Mapping[str, bytes], read: Callable[[bytes], Any]) -> list[tuple[str, Any]]:
    return [(key, its) for key, value in sorted(records.items()) if (its := read(value)) is not None]
