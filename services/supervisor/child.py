"""Keeps one program running: starts it, watches until it serves, restarts it when it ends, stops it for good."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable

import structlog

from services.common.clock import Clock, epoch_ms, monotonic
from services.common.restored import utc
from services.supervisor.executed import execute
from services.supervisor.output import Frame, forward
from services.supervisor.parent import PARENT_VARIABLE
from services.supervisor.process import Process, Start
from services.supervisor.program import Program
from services.supervisor.restarts import Restarts

log = structlog.get_logger()

_NOT_EXECUTED = 127  # the exit status that shells use
MEND = "see in its log why, mend that, and start the stack again"
"""What an operator does about a program that never served."""
_WHY = "see its last lines above, or who killed it; it goes on by itself"
_SLOW = "nothing, what is on disk is whole; if it comes again, see its last lines for what holds it up"
_ROOM = "see that the machine has memory, process ids and file descriptors left"
_CANNOT_RUN = " cannot run: "  # in the last line of a service that ends by itself
_LONGEST_REASON = 300  # characters
_POLL = 0.1  # seconds between health checks of a child that does not serve yet

HealthCheck = Callable[[str], Awaitable[bool]]


class Child:
    """Keeps `program` running from `start` to `stop`; `ended` is done when it has ended and is not started again."""

    ended: asyncio.Task[None]

    def __init__(
        self,
        program: Program,
        note_pid: Callable[[int], object],
        frame: Frame,
        is_serving: HealthCheck,
        served: set[str],
        start: Start = execute,
        clock: Clock = monotonic,
        note_end: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`note_pid` is told the process id at each start, `note_end` how it ended, and "" when it serves.

        `served` has the roles of which a process has served; all children of a stack share it.
        """
        self.name = program.name
        self.vital = program.vital
        self.serving = asyncio.Event()  # set when it has served since its last start
        self.last_words = ""  # the last line that it wrote before it ended
        self._program = program
        self._note_pid, self._note_end = note_pid, note_end
        self._frame = frame
        self._is_serving = is_serving
        self._served = served
        self._start = start
        self._clock = clock
        self._process: Process | None = None
        self._stopping = asyncio.Event()
        self._signal = signal.SIGTERM
        self._restarts = Restarts(may_give_up=program.vital)

    def start(self) -> None:
        """Runs the program from now on."""
        self.ended = asyncio.get_running_loop().create_task(self._keep_running(), name=self.name)

    async def stop(self, grace: float) -> None:
        """Asks the program to end, and kills it after `grace` seconds."""
        self._end(signal.SIGTERM)
        await asyncio.wait({self.ended}, timeout=grace)
        if not self.ended.done():
            log.warning("did not stop in time, killed", program=self.name, seconds=grace, do=_SLOW)
            self.kill()
            await asyncio.wait({self.ended})

    def kill(self) -> None:
        """Kills the program at once; it is not started again."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        self._signal = number
        self._stopping.set()
        if self._process and self._process.returncode is None:
            self._process.send_signal(number)

    async def _keep_running(self) -> None:
        while not self._stopping.is_set():
            started = self._clock()
            status = await self._run_once()
            if self._stopping.is_set():
                return
            cannot_start = status > 0 and self._program.role not in self._served
            delay = self._restarts.delay_after(self._clock() - started, cannot_start=cannot_start)
            if delay is None:
                log.error("cannot start, given up", program=self.name, status=describe(status), do=MEND)
                return
            log.warning("ended, starts again", program=self.name, status=describe(status), delay=delay, do=_WHY)
            how = describe(status) + (f" ({why})" if (why := _reason_in(self.last_words)) and status > 0 else "")
            self._note_end(f"{how} at {utc(epoch_ms())}, starts again {delay:.1f} s later")
            await self._pause(delay)

    async def _run_once(self) -> int:
        self.serving.clear()
        try:
            process = self._process = await self._spawn()
        except OSError as failure:
            self.last_words = f"cannot be executed: {failure}"
            log.warning("cannot be executed", program=self.name, reason=str(failure), do=_ROOM)
            return _NOT_EXECUTED
        if self._stopping.is_set():  # it was asked to stop while it was being spawned
            process.send_signal(self._signal)
        loop = asyncio.get_running_loop()
        output = loop.create_task(forward(process.stdout, self._frame))
        health = loop.create_task(self._watch_health())
        status = await process.wait()
        health.cancel()
        await asyncio.gather(health, return_exceptions=True)
        self.last_words = await output
        return status

    async def _spawn(self) -> Process:
        told = {PARENT_VARIABLE: str(os.getpid()), "PYTHONUNBUFFERED": "1"}
        process = await self._start(self._program, {**self._program.environment(), **told})
        self._note_pid(process.pid)
        return process

    async def _watch_health(self) -> None:
        while not await self._is_serving(self._program.address):  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(_POLL)
        self._note_end("")
        self._served.add(self._program.role)
        self.serving.set()

    async def _pause(self, seconds: float) -> None:
        await asyncio.wait({asyncio.ensure_future(self._stopping.wait())}, timeout=seconds)


def _reason_in(last_words: str) -> str:
    """Why a service of ours says that it cannot run; "" where it says nothing of the kind."""
    return last_words.partition(_CANNOT_RUN)[2][:_LONGEST_REASON]


def describe(status: int) -> str:
    """A process's return code in words."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
