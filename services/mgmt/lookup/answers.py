"""The look-up itself: what is asked, carried out step by step, in one thread."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from services.common.clock import Clock
from services.common.trace import Journey, Match, Trace
from services.mgmt.lookup.assemble import assemble, begin_of
from services.mgmt.lookup.database import Database
from services.mgmt.lookup.search import Search
from services.mgmt.lookup.way import follow

_SECONDS = 10.0  # after which no further step of a way is looked for


class Answers:
    """From the ledger in `folder`; raises what `Database.select` does."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._database = Database(folder)
        self._search = Search(self._database)
        self._clock = clock

    def trace(self, asked: str, journeys: int, everything: bool, unfiled: Mapping[str, pa.Table]) -> Trace:
        """As `LookUp.trace`, also from the rows in `unfiled`."""
        until = self._clock() + _SECONDS
        self._database.offer(unfiled)
        found, more = self._search.matches(asked, journeys, everything=everything)
        told = [journey for match in found if (journey := self._journey(match, until))]
        return Trace(id=asked, journeys=told, more=more)

    def interrupt(self) -> None:
        """From any thread: ends `trace`, which raises ResourceError."""
        self._database.interrupt()

    def close(self) -> None:
        """Frees what it holds."""
        self._database.close()

    def _journey(self, match: Match, until: float) -> Journey | None:
        way = follow(self._search, match.uid, match.time_us, lambda: self._clock() >= until)
        if not way.rows and match.kind == "uid":
            return None
        return assemble(match, way, self._search.gaps(begin_of(way, match)))
