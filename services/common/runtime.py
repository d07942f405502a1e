"""Runs a service process: uvloop, signals, garbage collection, background tasks that are never lost."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Protocol, TypeVar, runtime_checkable

import uvloop

from services.common.errors import BrokerError
from services.common.heap import keep_small
from services.common.log_lines import RECENT

_T = TypeVar("_T")

_CANCEL_AGAIN = 2.0  # seconds, in which cancelled tasks may finish their clean-up
_RESTART = "if its work stands still, start this process again"
_REPORT = "this is a fault of Hopline's: report it with these lines"


class CannotStart(Exception):
    """One line that tells the operator why, and what to do about it."""


class Service(Protocol):
    """A service, which the command line starts and stops."""

    async def start(self) -> None:
        """Returns when the service is ready; raises when it cannot be."""

    async def stop(self) -> None:
        """Hands over what it holds and releases what it opened."""


@runtime_checkable
class Keeper(Protocol):
    """A service that keeps much in memory for good reason, once it has started."""

    def kept(self) -> int:
        """So many bytes: they are not to be given back."""


def run(
    create: Callable[[], Awaitable[Service]], beside: Callable[[], Coroutine[Any, Any, None]] | None = None
) -> None:
    """Runs one service until SIGTERM or SIGINT, then stops it cleanly; `beside` it, once it is ready, one task."""
    # With millions of long-lived entries a full collection pauses for seconds, and the message path makes no cycles:
    # young collections stay, old ones become rare.
    gc.set_threshold(50_000, 20, 1000)
    uvloop.run(_serve(create, beside))


async def _serve(
    create: Callable[[], Awaitable[Service]], beside: Callable[[], Coroutine[Any, Any, None]] | None
) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    service, tasks = await create(), Tasks()
    try:
        if not await _start(service, stopping):
            return
        gc.freeze()
        if beside:
            tasks.start(beside(), "beside the service")
        tasks.start(keep_small(service.kept if isinstance(service, Keeper) else int), "keep memory small")
        await stopping.wait()
        RECENT.closing = True
        await service.stop()
    finally:
        # A service that could not start has not stopped what it had begun.
        await end(asyncio.all_tasks() - {asyncio.current_task()})


async def _start(service: Service, stopping: asyncio.Event) -> bool:
    """False when the process was asked to stop first: services wait in `start` for other services."""
    starting = asyncio.ensure_future(service.start())
    asked = asyncio.ensure_future(stopping.wait())
    await asyncio.wait({starting, asked}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if starting.done():
        starting.result()
        return True
    await end([starting])
    starting.cancelled() or starting.exception()  # it is not missed
    return False


async def end(running: Iterable[asyncio.Task[Any]]) -> None:
    """Cancels tasks and waits for them.

    It cancels again if need be: a library may swallow a cancellation that comes at the wrong moment.
    """
    while running := [task for task in running if not task.done()]:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=_CANCEL_AGAIN)


async def within(seconds: float, work: Coroutine[Any, Any, _T]) -> _T:
    """The result of `work`; raises TimeoutError where that takes longer.

    As asyncio.timeout, but for what libraries do: that cancels once, and a library which swallows it is waited for.
    """
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        await end({task})
    if task.cancelled():
        raise TimeoutError
    return task.result()


async def shielded(work: asyncio.Future[_T]) -> _T:
    """The result of `work`, which goes on if its caller is cancelled; its failure is then ignored."""
    work.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(work)


class Tasks:
    """Background tasks of one owner, safe from the GC. One that fails is logged and passed to `on_failure`."""

    def __init__(self, on_failure: Callable[[BaseException], None] | None = None) -> None:
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._on_failure = on_failure

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Runs `work` in the background."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._done)
        return task

    async def finish(self, seconds: float) -> None:
        """Gives running tasks `seconds` to end by themselves, then cancels them."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        await self.stop()

    async def stop(self) -> None:
        """Cancels running tasks and waits for them."""
        await end(list(self._tasks))

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled() or (failure := task.exception()) is None:
            return
        _log(task, failure)
        if self._on_failure:
            self._on_failure(failure)


def _log(task: asyncio.Task[Any], failure: BaseException) -> None:
    import structlog  # noqa: PLC0415 - a short-lived command would load it for nothing

    log = structlog.get_logger()
    if isinstance(failure, BrokerError):  # its text says what happened
        log.error("background task failed", task=task.get_name(), reason=failure.text, do=_RESTART)
    else:
        log.error("background task failed", task=task.get_name(), exc_info=failure, do=f"{_REPORT}; {_RESTART}")
