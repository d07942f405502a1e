"""A process's part of the ledger: rows are taken at any time, and sent to the bus in the background."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import structlog

from services.common.bus.address import bus_address
from services.common.bus.nats_link import Away, NatsLink, TooLarge
from services.common.clock import monotonic
from services.common.config import Settings
from services.common.containment import REPORT
from services.common.ledger import stream
from services.common.ledger.buffer import Buffer
from services.common.ledger.captures import OFF as NO_CAPTURES
from services.common.ledger.captures import CaptureBatches, Captures
from services.common.ledger.recorder import OFF, Recorder
from services.common.ledger.row_recorder import RowRecorder
from services.common.runtime import Tasks
from services.rpc.ledger_pb2 import LedgerBatch

log = structlog.get_logger()

INTERVAL: Final = 0.25  # seconds in which rows collect
SIGN_OF_LIFE: Final = 10.0  # seconds between batches, with rows or without
_AGAIN = 0.5
_LAST_WORDS = 2.0  # seconds to send what is left when the service stops
_TOO_LARGE = f"{REPORT}; where NATS has a max_payload below 1 MiB, set it to that"
_SAY_AFTER = 4  # attempts: NATS may still be starting, as this process is


class Ledger:
    """One for each process; `recorder` is there at once, and does nothing where there is no ledger or no bus.

    A batch is sent again until the bus has it, in order. Rows for which the buffer has no room are given up, oldest
    first; the filer in mgmt sees by their numbers that they are missing.
    """

    def __init__(self, settings: Settings, service: str, instance: str) -> None:
        self._settings = settings
        self._instance = instance
        self._subject = stream.subject_of(service, instance)
        self._address = bus_address(settings) if settings.ledger else ""
        self._buffer = Buffer(settings.ledger_buffer)
        self._more = asyncio.Event()
        # Rows are encoded at the end of a turn: what the turn answers goes first.
        later = asyncio.get_running_loop().call_soon
        self._rows = RowRecorder(service, instance, self._buffer.append, self._more.set, later)
        self.recorder: Recorder = self._rows if self._address else OFF
        header = LedgerBatch(service=service, instance=instance)
        self._captures = CaptureBatches(header, self._buffer, lambda: self._rows.next_row)
        self.captures: Captures = self._captures if self._address else NO_CAPTURES
        self._link: NatsLink | None = None
        self._told = 0.0
        self._tasks = Tasks()

    @property
    def written(self) -> int:
        """Rows of this process that were sent, or wait to be."""
        return self._rows.written

    @property
    def given_up(self) -> int:
        """Rows of this process that were given up."""
        return self._buffer.given_up

    def start(self) -> None:
        """Begins to send rows."""
        if self._address:
            self._tasks.start(self._run(), "ledger")

    async def stop(self) -> None:
        """Sends what is left, and that nothing follows, if the bus takes it at once."""
        await self._tasks.stop()
        if self._address:
            with contextlib.suppress(TimeoutError, Away):
                async with asyncio.timeout(_LAST_WORDS):
                    self._seal()
                    await self._sign(last=True)
        if self._link:
            await self._link.close()

    async def _run(self) -> None:
        failures = 0
        while True:
            if not failures:
                await self._row_or_silence()
            await asyncio.sleep(_AGAIN if failures else INTERVAL)
            self._more.clear()
            self._seal()
            try:
                if self._buffer:
                    await self._tell_all(await self._connected())
                else:
                    await self._sign()
            except Away as failure:
                failures += 1
                await self._disconnect()
                if failures == _SAY_AFTER:
                    log.warning(
                        "the ledger waits for the bus",
                        address=self._address,
                        reason=str(failure),
                        do="see that NATS runs, and that its disk has room; it goes on by itself",
                    )
            else:
                if failures >= _SAY_AFTER:
                    log.info("the ledger goes on", given_up=self.given_up)
                failures = 0

    def _seal(self) -> None:
        self._captures.seal()
        self._rows.seal()

    async def _row_or_silence(self) -> None:
        """Returns when there are rows to send, or when nothing was sent for so long that a sign of life is due."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SIGN_OF_LIFE + self._told - monotonic()):
                await self._more.wait()

    async def _tell_all(self, link: NatsLink) -> None:
        buffer = self._buffer
        while buffer:
            batch = buffer.oldest
            try:
                await link.store(self._subject, batch.payload, {stream.MESSAGE_ID: f"{self._instance}:{batch.name}"})
                buffer.sent(batch)
            except TooLarge as failure:  # what comes behind it goes on: the rows are missing by their numbers
                buffer.give_up(batch)
                about = {"rows": batch.rows, "octets": len(batch.payload), "reason": str(failure)}
                log.error("rows of the ledger are given up", do=_TOO_LARGE, **about)  # noqa: TRY400 - it is their size
            self._told = monotonic()

    async def _sign(self, *, last: bool = False) -> None:
        """Sends a batch without rows, after all others: it says that no other rows come before it."""
        link = await self._connected()
        while self._buffer:
            await self._tell_all(link)
        await link.store(self._subject, self._rows.sign_of_life(last=last))
        self._told = monotonic()

    async def _connected(self) -> NatsLink:
        if self._link is None or not self._link.up:
            await self._disconnect()
            self._link = await NatsLink.connect(self._address, f"{self._instance} ledger")
            await self._link.set_up(lambda context: stream.ensure(context, self._settings))
        return self._link

    async def _disconnect(self) -> None:
        if self._link:
            await self._link.close()
            self._link = None
