"""Follows what all processes log: one stream of each, while that is wanted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

import structlog

from services.common.clients.calls import stream
from services.common.clock import epoch_ns
from services.common.errors import BrokerError
from services.common.grpc_channel import connect
from services.common.log_lines import RECENT
from services.common.log_serving import followed
from services.common.runtime import Tasks
from services.mgmt.loggers.kind import now_us
from services.mgmt.metrics.gather import Addresses
from services.rpc.logs_pb2 import FollowRequest, Line, Lines
from services.rpc.logs_pb2_grpc import LogsStub

if TYPE_CHECKING:
    from services.rpc.logs_pb2_grpc import LogsAsyncStub

_LOOK: Final = 1.0
"""Seconds between looks who is there, and until who did not answer is asked again."""
_KNOWN: Final = 1000  # runs of processes whose last line is remembered

log = structlog.get_logger()


class Following:
    """`take` gets lines of all of them, this process's among them."""

    def __init__(
        self, addresses: Addresses, ready: Callable[[], Awaitable[None]], take: Callable[[Sequence[Line]], None]
    ) -> None:
        self._addresses = addresses
        self._ready = ready
        self._take = take
        self._tasks = Tasks()
        self._streams: dict[str, asyncio.Task[None]] = {}  # by address
        self._last: dict[str, int] = {}  # by process
        self._followed: set[str] = set()  # processes
        self._wanted = False

    async def want(self, wanted: bool) -> None:
        """From now on, or no more. What was followed before is followed from where it was."""
        if wanted and not self._wanted:
            self._tasks.start(self._run(), "who logs")
        elif self._wanted and not wanted:
            await self.stop()
        self._wanted = wanted

    async def stop(self) -> None:
        """Follows nobody."""
        await self._tasks.stop()
        self._streams.clear()
        self._followed.clear()

    async def _run(self) -> None:
        self._tasks.start(self._own(), "own lines")
        while True:
            try:
                await self._ready()
            except BrokerError as error:
                log.info("not all processes are known whose lines loggers want", reason=error.text)
            self._keep_up({address for each in self._addresses().values() for address in each.values() if address})
            await asyncio.sleep(_LOOK)

    def _keep_up(self, there: set[str]) -> None:
        for address in self._streams.keys() - there:
            self._streams.pop(address).cancel()
        for address in there:
            if address not in self._streams or self._streams[address].done():
                self._streams[address] = self._tasks.start(self._of(address), f"lines of {address}")

    async def _own(self) -> None:
        await self._each(followed(RECENT))

    async def _of(self, address: str) -> None:
        """Until it ends, or cannot be reached: it is tried again."""
        channel = connect(address)
        stub: LogsAsyncStub = LogsStub(channel)
        try:
            await self._each(stream(stub.Follow(FollowRequest())))
        except BrokerError as error:
            log.debug("a process does not say what it logs", address=address, reason=error.text)
        finally:
            await channel.close()

    async def _each(self, told: AsyncIterator[Lines]) -> None:
        """One run of a process is followed once, whatever addresses it has."""
        process = ""
        try:
            async for batch in told:
                if not process and batch.process in self._followed:
                    return
                process = batch.process
                self._followed.add(process)
                self._take_new(batch)
        finally:
            self._followed.discard(process)

    def _take_new(self, batch: Lines) -> None:
        """What was told before, of a stream that ended, is not told again."""
        last = self._last.pop(batch.process, 0)
        lines = [line for line in batch.lines if line.number > last]
        self._last[batch.process] = max(last, batch.lines[-1].number if batch.lines else 0)
        while len(self._last) > _KNOWN:
            del self._last[next(iter(self._last))]
        _place(lines, batch)
        if last and lines and (lost := lines[0].number - last - 1):
            self._take([_missing(lost, lines[0])])
        if lines:
            self._take(lines)


def _place(lines: Sequence[Line], told: Lines) -> None:
    """When each was logged as this process counts time: clocks of machines differ, and are set."""
    now, its = now_us(), told.now_us or epoch_ns() // 1000
    for line in lines:
        line.process = told.process
        line.known_us = now - (line.age_us if line.HasField("age_us") else max(its - line.time_us, 0))


def _missing(count: int, before: Line) -> Line:
    text = f"{count} lines of this process are missing here: there were too many at once, or it was out of reach"
    told = Line(level="WARN", logger=__name__, service=before.service, instance=before.instance, text=text)
    told.time_us, told.known_us = before.time_us, before.known_us
    return told
