"""Simulated processes: whose turn it is, what it has yet to do, what time it thinks that it is.

Which process a callback belongs to is a variable of its context, so that tasks and callbacks inherit it. A process that
was killed keeps all that it had: nothing of it is ever destroyed while the world runs, so that no `finally` block of it
runs either.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.world.loop import Handle

PROCESS: ContextVar[Process] = ContextVar("PROCESS")

EPOCH_NS = 1_790_000_000 * 10**9
_FORGET = 256  # tasks that are remembered before those that are done are forgotten


class Host:
    """A machine of one process at a time; faults of the network name it."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.address = f"10.0.{number >> 8}.{number & 255}"
        self.process: Process | None = None
        self.offset = 0.0  # of the monotonic clock
        self.wall_ns = 0  # that the wall clock is off
        self.rate = 1.0  # of its clocks, against true time

    @property
    def is_up(self) -> bool:
        """Whether it has a process that is not dead."""
        return self.process is not None and not self.process.dead


class Process:
    """One life of a process. Made anew at each start."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.name = host.name
        self.number = host.number
        self.ready: deque[Handle] = deque()
        self.queued = False  # among those that the scheduler may choose
        self.held = 0  # reasons why it stands still
        self.dead = False
        self.fuse = 0  # callbacks until it is killed; 0: it is not
        self.starved = 0.0  # seconds that each of its turns takes
        self.asleep = 0.0  # seconds for which its timers stood still
        self.asleep_until = 0.0  # in the world's time
        self.on_death: dict[Callable[[], None], None] = {}
        self.on_terminate: Callable[[], None] | None = None
        self.graveyard: list[object] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._forget_at = _FORGET
        self.context: Context = copy_context()
        self.context.run(PROCESS.set, self)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """Keeps a task until it is done, or for ever when the process dies first."""
        self._tasks.append(task)
        if len(self._tasks) >= self._forget_at:
            self._tasks = self.tasks()
            self._forget_at = max(_FORGET, 2 * len(self._tasks))

    def tasks(self) -> list[asyncio.Task[Any]]:
        """Those that are not done, oldest first."""
        return [task for task in self._tasks if not task.done()]

    def local(self, now: float) -> float:
        """The time of its loop at a moment of the world."""
        return (now - self.asleep) * self.host.rate

    def true(self, local: float) -> float:
        """The first moment of the world at which its loop's time is that: a timer is never early.

        Rounded down, it would be early for ever: who waits for what is left waits until the same moment again.
        """
        moment = local / self.host.rate + self.asleep
        while self.local(moment) < local:
            moment = math.nextafter(moment, math.inf)
        return moment

    def monotonic(self, now: float) -> float:
        """A clock that counts on while the machine sleeps."""
        return self.host.offset + now * self.host.rate

    def time_ns(self, now: float) -> int:
        """The wall clock."""
        return EPOCH_NS + self.host.wall_ns + int(now * self.host.rate * 1e9)

    def terminate(self) -> None:
        """SIGTERM."""
        if self.on_terminate:
            self.on_terminate()

    def die(self) -> None:
        """From now on nothing of it runs; its peers find out."""
        if self.dead:
            return
        self.dead = True
        for tell in list(self.on_death):
            tell()
        self.on_death.clear()
