"""Files of all loggers, as they were at the last look: a disk that hangs keeps nobody else waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from services.common.runtime import Tasks
from services.mgmt.loggers.file import path_of
from services.mgmt.loggers.files import details
from services.mgmt.loggers.records import LoggerRecord, Place
from services.mgmt.model.faults import IllegalConfiguration

_PATIENCE: Final = 3.0  # seconds


class LookedAt:
    """`last` has details of files by the place of their logger; `loggers` gives what there is to look at."""

    def __init__(self, folder: Path, loggers: Callable[[], Mapping[Place, LoggerRecord]]) -> None:
        self.last: Mapping[Place, list[dict[str, Any]]] = {}
        self._folder = folder
        self._loggers = loggers
        self._tasks = Tasks()
        self._looking: asyncio.Task[None] | None = None

    async def look(self) -> None:
        """Returns when all are as they are now, or, of a disk that hangs, after some seconds."""
        if self._looking is None or self._looking.done():
            self._looking = self._tasks.start(self._look(), "looking at files of logs")
        await asyncio.wait([self._looking], timeout=_PATIENCE)

    async def stop(self) -> None:
        """Looks no more."""
        await self._tasks.stop()

    async def _look(self) -> None:
        wanted = {place: its for place, its in self._loggers().items() if its.type == "File"}
        self.last = await asyncio.to_thread(self._details, wanted) if wanted else {}

    def _details(self, wanted: Mapping[Place, LoggerRecord]) -> Mapping[Place, list[dict[str, Any]]]:
        found = {}
        for place, its in wanted.items():
            with suppress(IllegalConfiguration):  # the folder for logs is another one now
                found[place] = details(path_of(its.attributes, self._folder))
        return found
