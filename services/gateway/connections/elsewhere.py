"""Exchanges with other gateways how many limited connections and channels each has.

In transient records, one for each gateway, written while there are limits. A gateway's record counts while the gateway
is registered: clients of a dead one are connected to others by now.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

import structlog

from services.common import watchers
from services.common.containment import for_each
from services.common.errors import BrokerError
from services.common.limits import Subject
from services.rpc.store_pb2 import Record, Records

if TYPE_CHECKING:
    from services.common.telemetry.status import Put
    from services.gateway.connections.limited import LimitedConnections, Uses

log = structlog.get_logger()

USE: Final = "limits_use"
"""Records; the key is the gateway's name."""
KINDS: Final = (USE, watchers.RECORD_KIND)
_EVERY: Final = 0.5  # seconds
_LAST_WORDS: Final = 0.2  # seconds


class Elsewhere:
    """For one gateway, with the name `own`."""

    def __init__(self, own: str, limited: LimitedConnections) -> None:
        self._own = own
        self._limited = limited
        self._said: dict[str, Uses] = {}
        self._living: set[str] = set()
        self._whole = True  # the snapshot has been read to its end
        self._looks = asyncio.Event()
        limited.limits.listeners.append(self._looks.set)

    async def follow(self, records: AsyncIterator[Records]) -> None:
        """Applies a watch of records of KINDS; ends with it."""
        async for batch in records:
            if batch.snapshot and self._whole:
                self._said, self._living = {}, set()
            for_each("reading what a gateway has", batch.records, self._apply)
            self._whole = batch.last or not batch.snapshot
            if self._whole:
                self._limited.elsewhere = self._others()

    async def report(self, put: Put) -> None:
        """Writes this gateway's numbers whenever they differ from its record; runs until it is cancelled."""
        while True:
            await self._looks.wait()
            await asyncio.sleep(_EVERY)
            used = self._limited.used()
            if used != self._said.get(self._own, {}):
                await self._tell(put, used)
            elif not self._limited.limits.some:
                self._looks.clear()

    async def leave(self, put: Put) -> None:
        """Deletes this gateway's record."""
        with contextlib.suppress(BrokerError, TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await put([], [Record(kind=USE, key=self._own)])

    async def _tell(self, put: Put, used: Uses) -> None:
        value = json.dumps([[*subject, values] for subject, values in used.items()]).encode()
        try:
            await put([Record(kind=USE, key=self._own, value=value, transient=True)], [])
        except BrokerError as error:
            log.debug("what is used of limits is not told", reason=error.text)

    def _others(self) -> Uses:
        total: dict[Subject, Counter[str]] = {}
        for name in self._said.keys() & self._living - {self._own}:
            for subject, values in self._said[name].items():
                total.setdefault(subject, Counter()).update(values)
        return total

    def _apply(self, record: Record) -> None:
        if record.kind == watchers.RECORD_KIND:
            there = not record.deleted and watchers.role_in(record.value) == "gateway"
            (self._living.add if there else self._living.discard)(record.key)
        elif record.deleted:
            self._said.pop(record.key, None)
        else:
            self._said[record.key] = {Subject(kind, name): values for kind, name, values in json.loads(record.value)}
