"""An event loop on virtual time for many simulated processes: no selector, no threads, and every choice by the seed.

Callbacks of one process run in the order in which they were asked for, a turn at a time, as in any loop; which
process has the next turn is drawn. Time stands still while any process has something to do, then jumps to the next
timer.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import socket
import sys
from asyncio import events
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from tests.simulation.world.processes import PROCESS, Process

if TYPE_CHECKING:
    from tests.simulation.world.transports import Sockets

T = TypeVar("T")

_COLLECT = 50_000  # turns: the collector runs at moments that are the same for the same history


class Deadlock(Exception):
    """Nothing can ever happen any more."""


class OutOfTime(Exception):
    """The scenario is not done after all the virtual time that it was given."""


class Handle:
    """As asyncio.TimerHandle."""

    __slots__ = ("args", "callback", "context", "process", "time")

    def __init__(
        self,
        process: Process,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context,
        time: float = 0.0,
    ) -> None:
        self.process = process
        self.callback: Callable[..., object] | None = callback
        self.args = args
        self.context = context
        self.time = time

    def cancel(self) -> None:
        self.callback = None
        self.args = ()

    def cancelled(self) -> bool:
        return self.callback is None

    def when(self) -> float:
        """By the clock of its process's loop."""
        return self.time


class Loop(asyncio.AbstractEventLoop):
    """Runs one scenario; `kernel` is the process of all that belongs to none, above all the network."""

    def __init__(self, random: Random, kernel: Process, on_fault: Callable[[dict[str, Any]], None]) -> None:
        """`on_fault` gets what asyncio gives to exception handlers."""
        self.now = 0.0
        self.hash = 0
        self.turns = 0
        self.trace: list[tuple[Any, ...]] | None = None
        self.kernel = kernel
        self._random = random.random
        self._on_fault = on_fault
        self._runnable: list[Process] = []
        self._timers: list[tuple[float, int, Handle]] = []
        self._number = 0
        self._closed = False
        self._processes: dict[Process, None] = {}
        self.sockets: Sockets  # set by the world, before anything runs

    # -------------------------------------------------------------- what asyncio asks for

    def time(self) -> float:
        return PROCESS.get(self.kernel).local(self.now)

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None:
        """There is none."""

    def is_running(self) -> bool:
        return not self._closed

    def is_closed(self) -> bool:
        return self._closed

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: object = None, context: Context | None = None
    ) -> asyncio.Task[T]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)  # type: ignore[arg-type]
        process = PROCESS.get(self.kernel) if context is None else context.get(PROCESS, self.kernel)
        process.adopt(task)
        self._processes[process] = None
        return task

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> tuple[str, str]:  # type: ignore[override]
        """No address has a name here."""
        raise socket.gaierror(socket.EAI_NONAME, f"{sockaddr[0]} has no name")

    async def getaddrinfo(self, host: Any, port: Any, **_options: Any) -> list[Any]:  # type: ignore[override]
        """Where hosts are is known to the network, which finds them by name."""
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port))]

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: str = "", port: int = 0, **_options: Any
    ) -> tuple[Any, Any]:
        return await self.sockets.connect(protocol_factory, host, port)

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], _host: Any = None, port: int = 0, **_options: Any
    ) -> Any:
        return self.sockets.serve(protocol_factory, port)

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Handle:  # type: ignore[override]
        if context is None:
            context = copy_context()
        process = context.get(PROCESS, self.kernel)
        handle = Handle(process, callback, args, context)
        self._enqueue(process, handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        if context is None:
            context = copy_context()
        process = context.get(PROCESS, self.kernel)
        return self._arm(process.true(when), Handle(process, callback, args, context, when))

    def run_in_executor(self, _executor: object, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """Does it at once; that it is done is known in a later turn."""
        done: asyncio.Future[T] = self.create_future()
        try:
            result = func(*args)
        except Exception as failure:  # noqa: BLE001 - it is raised to the waiting task
            self.call_soon(_fail, done, failure)
        else:
            self.call_soon(_succeed, done, result)
        return done

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._closed:
            self._on_fault(context)

    async def shutdown_asyncgens(self) -> None:
        """There is nothing to shut down before the world ends."""

    # -------------------------------------------------------------- what the world asks for

    def at(self, when: float, process: Process, callback: Callable[..., object], *args: Any) -> Handle:
        """Calls back as `process`, at a moment of the world."""
        return self._arm(when, Handle(process, callback, args, process.context, when))

    def after(self, delay: float, process: Process, callback: Callable[..., object], *args: Any) -> Handle:
        return self.at(self.now + delay, process, callback, *args)

    def soon(self, process: Process, callback: Callable[..., object], *args: Any) -> None:
        """Calls back as `process`, in its next turn."""
        self._enqueue(process, Handle(process, callback, args, process.context))

    def note(self, *event: float) -> None:
        """Makes numbers part of the history's hash."""
        self.hash = hash((self.hash, *event))
        if self.trace is not None:
            self.trace.append((self.now, *event))

    def hold(self, process: Process) -> None:
        """It stands still until it is released as often."""
        process.held += 1

    def release(self, process: Process) -> None:
        process.held = max(process.held - 1, 0)
        self._wake(process)

    def put_to_sleep(self, process: Process, seconds: float) -> None:
        """Its timers stand still for so long: those that are set come so much later. Repeated, the later end counts."""
        until, awake_from = self.now + seconds, max(self.now, process.asleep_until)
        if until > awake_from:
            process.asleep_until = until
            self._delay_timers(process, until - awake_from)

    def awaken(self, process: Process) -> None:
        """Its timers go on, if they stand still."""
        if process.asleep_until > self.now:
            self._delay_timers(process, self.now - process.asleep_until)
            process.asleep_until = self.now

    def _delay_timers(self, process: Process, seconds: float) -> None:
        process.asleep += seconds
        self._timers = [
            (when + seconds, number, handle) if handle.process is process else (when, number, handle)
            for when, number, handle in self._timers
        ]
        heapq.heapify(self._timers)

    def run(self, main: Coroutine[Any, Any, T], process: Process, limit: float) -> T:
        """Runs `main` as `process` to its end. Raises Deadlock and OutOfTime."""
        former = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(finalizer=self._finish_generator)
        events._set_running_loop(self)
        try:
            task = process.context.run(self.create_task, main)
            runnable = self._runnable
            while not task.done():
                if not runnable:
                    self._advance(limit)
                self._turn(self._choose() if len(runnable) > 1 else runnable.pop())
            return task.result()
        finally:
            self._closed = True
            events._set_running_loop(None)
            sys.set_asyncgen_hooks(*former)

    def unfinished(self) -> list[asyncio.Task[Any]]:
        """Tasks that have not ended, of the living and the dead."""
        return [task for process in self._processes for task in process.tasks()]

    def kill_all(self) -> None:
        """There are no processes any more."""
        for process in list(self._processes):
            process.die()

    def forget(self) -> None:
        """Nothing is to be kept any more."""
        self._processes.clear()
        self._timers.clear()
        self._runnable.clear()

    # -------------------------------------------------------------- turns

    def _enqueue(self, process: Process, handle: Handle) -> None:
        if process.dead or self._closed:
            process.graveyard.append(handle)
            return
        process.ready.append(handle)
        if not (process.queued or process.held):
            process.queued = True
            self._runnable.append(process)

    def _wake(self, process: Process) -> None:
        if process.ready and not (process.queued or process.held or process.dead):
            process.queued = True
            self._runnable.append(process)

    def _choose(self) -> Process:
        runnable = self._runnable
        index = int(self._random() * len(runnable))
        runnable[index], runnable[-1] = runnable[-1], runnable[index]
        return runnable.pop()

    def _turn(self, process: Process) -> None:
        process.queued = False
        if process.dead or process.held:
            return
        ready = process.ready
        self.turns += 1
        if not self.turns % _COLLECT:
            gc.collect()
        count = len(ready)
        self.hash = hash((self.hash, process.number, count, self.now))
        if self.trace is not None:
            self.trace.append((self.now, process.number, count))
        for _ in range(count):
            handle = ready.popleft()
            if handle.callback is not None:
                self._run(process, handle)
                if process.dead:
                    return
        if process.starved:
            self.hold(process)
            self.after(process.starved, self.kernel, self.release, process)
        elif ready:
            self._wake(process)

    def _run(self, process: Process, handle: Handle) -> None:
        try:
            handle.context.run(handle.callback, *handle.args)  # type: ignore[arg-type]
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as failure:  # noqa: BLE001 - as asyncio's own loop does
            self.call_exception_handler({"message": f"in {handle.callback}", "exception": failure})
        if process.fuse:
            process.fuse -= 1
            if not process.fuse:
                process.graveyard.append(handle)
                process.die()

    # -------------------------------------------------------------- time

    def _arm(self, when: float, handle: Handle) -> Handle:
        self._number += 1
        if handle.process.dead or self._closed:
            handle.process.graveyard.append(handle)
        else:
            heapq.heappush(self._timers, (when, self._number, handle))
        return handle

    def _advance(self, limit: float) -> None:
        """To the next moment at which a process has something to do."""
        timers = self._timers
        while not self._runnable:
            if not timers:
                raise Deadlock(f"nothing can ever happen any more after {self.now:.3f} s")
            self.now = max(self.now, timers[0][0])
            if self.now > limit:
                raise OutOfTime(f"not done after {limit:g} s")
            while timers and timers[0][0] <= self.now:
                handle = heapq.heappop(timers)[2]
                if handle.callback is not None:
                    self._enqueue(handle.process, handle)

    def _finish_generator(self, generator: Any) -> None:
        if not self._closed:
            self.call_soon(self.create_task, generator.aclose())


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], failure: Exception) -> None:
    if not future.done():
        future.set_exception(failure)
