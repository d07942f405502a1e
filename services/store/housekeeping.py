"""What keeps the store small while it runs: compaction, forgetting, space. A little at a time, beside the commits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from services.store.committer import Committer
from services.store.compaction import compact
from services.store.disk import Disk
from services.store.live import Live
from services.store.provider import Provider
from services.store.running import RunningTime
from services.store.transactions import KEPT_MS, Transactions

_PERIOD_SECONDS = 1.0
_TIDY_EVERY = 10
# Writers, floors and taken messages serve to recognise what is resent; after a day no client resends anything.
_MARKS_KEPT_MS = 24 * 3_600_000
_LOOK = "see that the disk of HOPLINE_DATA has room, and takes writes"

log = structlog.get_logger()


class Housekeeping:
    """Runs beside the commits; what it writes goes through them."""

    def __init__(
        self,
        provider: Provider,
        disks: Sequence[Disk],
        committer: Committer,
        live: Live,
        transactions: Transactions,
        running: RunningTime,
    ) -> None:
        """Of `disks` the first is that of messages."""
        self._disks = disks
        self._provider = provider
        self._disk = disks[0]
        self._committer = committer
        self._live = live
        self._transactions = transactions
        self._running = running

    async def run(self) -> None:
        """Runs for ever; a failure is logged once and tried again."""
        turn = 0
        failed = False
        while True:
            await asyncio.sleep(_PERIOD_SECONDS)
            turn += 1
            for disk in self._disks:
                disk.look()
            try:
                await self._step(tidy=turn % _TIDY_EVERY == 0)
            except Exception as failure:  # noqa: BLE001 - the disk may be full for a while; commits go on trying too
                if not failed:
                    log.warning(
                        "what is not needed any more stays on disk, until this works again",
                        reason=repr(failure),
                        do=getattr(failure, "do", _LOOK),
                    )
                failed = True
            else:
                failed = False

    async def _step(self, *, tidy: bool) -> None:
        if self._disk.low:
            await self._provider.make_room()
        now = self._running.look()
        for work in await compact(self._provider, self._live, now, self._disk.room_for_messages()):
            self._committer.submit(work)
        if tidy:
            self._transactions.forget(now - KEPT_MS)
            await self._provider.tidy(now - KEPT_MS, now - _MARKS_KEPT_MS)
