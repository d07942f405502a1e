"""Publishes events to NATS in the background. The message path does not wait for NATS or its subscribers."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import Counter
from typing import NamedTuple

import structlog

from services.common.bus.buffer import Batch, Buffer
from services.common.bus.event import Event
from services.common.bus.facts import Facts
from services.common.bus.nats_link import Away, NatsLink
from services.common.bus.subject import subject_of
from services.common.clock import epoch_ms, monotonic
from services.common.runtime import Tasks

log = structlog.get_logger()

CAPACITY = 10_000  # events, some megabytes
_BATCH = 500
_GATHER = 0.005  # seconds in which events of one moment collect …
_STEADY = 0.05  # … and those of a while, in which one comes after the other: each batch costs a round trip
_LAST_WORDS = 0.5  # seconds to publish what is left when the service stops
_DO = "see that NATS runs there; it goes on by itself"
_SAY_AFTER = 2  # attempts: NATS may still be starting, as this process is


class _Happened(NamedTuple):
    time_ms: int
    facts: Facts


class EventBus:
    """One for each process. `publish` may be called before `start`, and with no NATS at all.

    Up to `capacity` events that NATS does not take are kept; what is given up is counted, and the next batch that gets
    through begins with a `bus.gap` that reports it. Nothing is published twice.
    """

    def __init__(self, address: str, service: str, instance: str, origin: int = 0, capacity: int = CAPACITY) -> None:
        """`address` is a nats:// URL, or "" to publish nothing."""
        self._address = address
        self._service = service
        self._instance = instance
        self._origin = origin
        self._buffer: Buffer[_Happened] = Buffer(capacity)
        self.happened: Counter[str] = Counter()
        """Events by kind, published or not."""
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._link: NatsLink | None = None
        self._away = False  # as the log says
        self._tasks = Tasks()

    @property
    def missed(self) -> int:
        """Events of this process that were given up."""
        return self._buffer.missed

    def publish(self, facts: Facts) -> None:
        """As Events.publish."""
        self.happened[facts.kind] += 1
        if self._address:
            self._buffer.append(_Happened(epoch_ms(), facts))
            self._wake.set()
            self._idle.clear()

    def start(self) -> None:
        """Begins to publish; connects at the first event."""
        if self._address:
            self._tasks.start(self._run(), "event bus")

    async def stop(self) -> None:
        """Publishes what is left, if NATS takes it at once."""
        if self._link:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS):
                    await self._idle.wait()
        await self._tasks.stop()
        if self._link:
            await self._link.close()

    async def _run(self) -> None:
        told = -math.inf
        while True:
            await self._wake.wait()
            await asyncio.sleep(max(_GATHER, told + _STEADY - monotonic()))
            link = await self._connected()
            self._wake.clear()
            await self._tell(link)
            told = monotonic() if len(self._buffer) < _BATCH else -math.inf
            if self._buffer:
                self._wake.set()
            else:
                self._idle.set()

    async def _tell(self, link: NatsLink) -> None:
        batch = self._buffer.take(_BATCH)
        try:
            await link.send(self._messages(batch))
        except Away as failure:
            self._buffer.failed(batch)
            self._say_away(str(failure))
            await link.close()
            self._link = None
        else:
            self._buffer.sent(batch)
            if self._away or batch.gap:
                self._away = False
                log.info("event bus is back", address=self._address, missed=batch.gap.count if batch.gap else 0)

    def _messages(self, batch: Batch[_Happened]) -> list[tuple[str, bytes]]:
        messages = [self._message(batch.first + number, happened) for number, happened in enumerate(batch.items)]
        if batch.gap:
            messages.insert(0, self._message(batch.first, _Happened(epoch_ms(), batch.gap)))
        return messages

    def _message(self, sequence: int, happened: _Happened) -> tuple[str, bytes]:
        event = Event(
            time_ms=happened.time_ms,
            service=self._service,
            instance=self._instance,
            origin=self._origin,
            sequence=sequence,
            facts=happened.facts,
        )
        return subject_of(happened.facts), event.to_json()

    async def _connected(self) -> NatsLink:
        if self._link and self._link.up:
            return self._link
        if self._link:
            await self._link.close()
            self._link = None
        attempts = 0
        while self._link is None:
            try:
                self._link = await NatsLink.connect(self._address, self._instance)
            except Away as failure:
                attempts += 1
                if attempts >= _SAY_AFTER:
                    self._say_away(str(failure))
        return self._link

    def _say_away(self, reason: str) -> None:
        if not self._away:
            self._away = True
            log.warning("event bus is away, messages go on", address=self._address, reason=reason, do=_DO)
