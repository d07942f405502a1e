"""Lines on their way to a disk or another machine: in batches, bounded, and in vain as long as that is in trouble."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Final

import structlog

from services.common.few_lines import FewLines
from services.common.runtime import Tasks
from services.mgmt.loggers.kind import EVER, Sink
from services.rpc.logs_pb2 import Line

_WAITING: Final = 10_000
"""Lines that wait; the oldest go first."""
_AT_ONCE: Final = 1000
_DO: Final = "mend that; lines wait, and go on by themselves; of too many the oldest are lost"
_AGAIN: Final = 1.0
_LAST: Final = 2.0
"""Seconds: until it is tried again, and for what is left at the end."""

log = structlog.get_logger()


class Partly(OSError):
    """So many got there, and then there was trouble."""

    def __init__(self, done: int, error: OSError) -> None:
        super().__init__(error.errno, error.strerror or str(error))
        self.done = done


class Outbox(ABC):
    """See Sink."""

    since_us = EVER

    def __init__(self, name: str) -> None:
        self.trouble = ""
        self._name = name
        self._waiting: deque[Line] = deque()
        self._lost = 0
        self._some = asyncio.Event()
        self._closing = False
        self._few = FewLines(1, 60.0)
        self._tasks = Tasks()
        self._tasks.start(self._run(), f"lines of logger {name}")

    def take(self, lines: Sequence[Line]) -> None:
        self._waiting.extend(lines)
        self._shorten()
        self._some.set()

    def _shorten(self) -> None:
        while len(self._waiting) > _WAITING:
            self._waiting.popleft()
            self._lost += 1

    async def close(self) -> None:
        """A disk that hangs is not waited for."""
        self._closing = True
        self._some.set()
        await self._tasks.finish(_LAST)
        await self._end()

    def left(self) -> list[Line]:
        """What did not get there before it was closed."""
        return list(self._waiting)

    async def _run(self) -> None:
        while True:
            await self._some.wait()
            if self._waiting:
                await self._try()
            if self._closing and (self.trouble or not self._waiting):
                return
            if not self._waiting:
                self._some.clear()

    async def _try(self) -> None:
        try:
            await self._deliver_some()
        except Exception as error:  # noqa: BLE001 - whatever it is, lines that come later may get there
            self._troubled(error)
            if not self._closing:
                await asyncio.sleep(_AGAIN)

    async def _deliver_some(self) -> None:
        batch = [self._waiting.popleft() for _ in range(min(_AT_ONCE, len(self._waiting)))]
        lost = self._lost  # more may be lost meanwhile
        if lost:
            batch.insert(0, Line(time_us=batch[0].time_us, level="WARN", text=f"{lost} lines are missing here"))
        try:
            if batch:
                await self._deliver(batch)
        except BaseException as error:
            done = error.done if isinstance(error, Partly) else 0
            self._waiting.extendleft(reversed(batch[max(done, bool(lost)) :]))
            self._lost -= lost if done else 0
            self._shorten()
            raise
        self.trouble = ""
        self._lost -= lost

    def _troubled(self, error: Exception) -> None:
        self.trouble = getattr(error, "strerror", None) or str(error) or type(error).__name__
        # It comes back as one of its own lines.
        what = "a logger's lines do not get where they go"
        self._few.say(log.warning, what, logger=self._name, reason=self.trouble, do=_DO)

    @abstractmethod
    async def _deliver(self, lines: Sequence[Line]) -> None:
        """All, or raises OSError: Partly where some are not to be told again."""

    @abstractmethod
    async def _end(self) -> None:
        """After the last one."""


def in_place_of(former: Sink | None, made: Outbox) -> Outbox:
    """The same logger, changed: what is on its way is not lost, nor told twice."""
    if isinstance(former, Outbox):
        made.since_us = former.since_us
        made.take(former.left())
    return made
