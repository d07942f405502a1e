"""The look-up as a part of a service: one question at a time, in a thread of its own, within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from services.common.clock import Clock, monotonic
from services.common.errors import ResourceError, SyntaxFault
from services.common.trace import LONGEST_ID, MOST_JOURNEYS, Journey, Match, Trace
from services.mgmt.lookup.assemble import assemble, begin_of
from services.mgmt.lookup.database import Database
from services.mgmt.lookup.search import Search
from services.mgmt.lookup.way import follow

_SECONDS = 10.0  # after which no further step of a way is looked for
_HARD_SECONDS = 20.0  # after which a question is broken off
_MOST_WAITING = 16

Unfiled = Callable[[], Mapping[str, pa.Table]]
"""Rows that are not in files yet, by table; called in the event loop."""


def nothing_unfiled() -> Mapping[str, pa.Table]:
    """Where files are all there is."""
    return {}


class LookUp:
    """Answers from the ledger in `folder`, and from what `unfiled` gives."""

    def __init__(self, folder: Path, unfiled: Unfiled = nothing_unfiled, clock: Clock = monotonic) -> None:
        self._database = Database(folder)
        self._search = Search(self._database)
        self._unfiled = unfiled
        self._clock = clock
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="look-up")
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def trace(self, asked: str, journeys: int = 1, *, everything: bool = False) -> Trace:
        """The ways of the newest messages that have the id `asked`: of the newest day that has any, or of all time.

        Raises SyntaxFault for what cannot be an id, ResourceError when too much is asked for, Unavailable when the
        ledger cannot be read.
        """
        if not 0 < len(asked) <= LONGEST_ID or not 0 < journeys <= MOST_JOURNEYS:
            raise SyntaxFault(f"an id has 1 to {LONGEST_ID} characters; 1 to {MOST_JOURNEYS} journeys are told")
        if self._waiting >= _MOST_WAITING:
            raise ResourceError("too many look-ups at a time; try again")
        self._waiting += 1
        try:
            async with self._turn:
                return await self._bounded(asked, journeys, everything)
        finally:
            self._waiting -= 1

    async def stop(self) -> None:
        """Breaks off what is under way."""
        self._database.interrupt()
        await asyncio.to_thread(self._thread.shutdown)
        self._database.close()

    async def _bounded(self, asked: str, journeys: int, everything: bool) -> Trace:
        # Taken before the files are listed: what is filed meanwhile is found twice rather than never.
        unfiled = self._unfiled()
        work = asyncio.get_running_loop().run_in_executor(
            self._thread, self._answer, asked, journeys, everything, unfiled
        )
        try:
            async with asyncio.timeout(_HARD_SECONDS):
                return await asyncio.shield(work)
        except (TimeoutError, asyncio.CancelledError) as end:
            # The thread is free again before anyone else has a turn.
            self._database.interrupt()
            await asyncio.wait([work])
            if isinstance(end, TimeoutError):
                raise ResourceError(f"the look-up takes longer than {_HARD_SECONDS:.0f} seconds") from None
            raise

    def _answer(self, asked: str, journeys: int, everything: bool, unfiled: Mapping[str, pa.Table]) -> Trace:
        until = self._clock() + _SECONDS
        self._database.offer(unfiled)
        found, more = self._search.matches(asked, journeys, everything=everything)
        told = [journey for match in found if (journey := self._journey(match, until))]
        return Trace(id=asked, journeys=told, more=more)

    def _journey(self, match: Match, until: float) -> Journey | None:
        way = follow(self._search, match.uid, match.time_us, lambda: self._clock() >= until)
        if not way.rows and match.kind == "uid":
            return None
        return assemble(match, way, self._search.gaps(begin_of(way, match)))
