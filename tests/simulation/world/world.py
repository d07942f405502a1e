"""A world: a seed, a loop, a network and the cluster in it. See the package's docstring."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import shutil
import sys
import tempfile
import warnings
from collections.abc import Coroutine, Iterator
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import structlog

from services.common.errors import BrokerError
from tests.simulation.world.addresses import Network
from tests.simulation.world.cluster import Cluster
from tests.simulation.world.loop import Loop
from tests.simulation.world.patches import patched
from tests.simulation.world.processes import PROCESS, Host, Process
from tests.simulation.world.shape import Shape
from tests.simulation.world.transports import Sockets

T = TypeVar("T")

_frozen: list[bool] = []
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "exception": 40, "critical": 50}


@dataclass(frozen=True, slots=True)
class Complaint:
    """What a service logged at level error or above, or a task that failed; `failure` where there was an exception."""

    time: float
    process: str
    text: str
    failure: BaseException | None = None


class World:
    """Runs one scenario."""

    def __init__(
        self, seed: int, shape: Shape | None = None, *, limit: float = 600.0, verbose: bool = False, trace: bool = False
    ) -> None:
        """`verbose` keeps all that is logged in `lines`, `trace` all events of the history in `loop.trace`."""
        if not _frozen:
            gc.freeze()  # modules and the like, which the collections between histories need not look at
            _frozen.append(True)
        self.shape = shape or Shape()
        self.random = Random(f"scenario {seed}")
        self.complaints: list[Complaint] = []
        self.lines: list[str] = []
        self._verbose = verbose
        self._limit = limit
        self._randomness = Random(f"product {seed}")
        self._folder = Path(tempfile.mkdtemp(prefix="hopline-world-", dir=_memory()))
        kernel = Process(Host("kernel", 0))
        self.loop = Loop(Random(f"scheduler {seed}"), kernel, self._fault)
        if trace:
            self.loop.trace = []
        self.network = Network(self.loop, Random(f"network {seed}"), self.shape)
        self.loop.sockets = Sockets(self.network)
        self._hosts: dict[str, Process] = {}
        self._scenario = self._process("scenario")
        self.cluster = Cluster(self.network, self.shape, Random(f"disk {seed}"), self._folder)

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """What `main` gives, run to its end. Raises Deadlock, OutOfTime, and what `main` raises."""
        with patched(self.loop, self.network, self._randomness, self._log, 10 if self._verbose else 40):
            try:
                return self.loop.run(main, self._scenario, self._limit)
            finally:
                self._close()

    @property
    def faults(self) -> list[Complaint]:
        """Complaints of exceptions that no service means to raise."""
        return [each for each in self.complaints if each.failure and not isinstance(each.failure, BrokerError)]

    def time(self) -> float:
        """Virtual seconds since the beginning."""
        return self.loop.now

    def digest(self) -> int:
        """A hash of all events so far."""
        return hash((self.loop.hash, self.loop.turns, self.loop.now))

    @contextlib.contextmanager
    def host(self, name: str) -> Iterator[None]:
        """Tasks and connections that are begun inside are those of a client's host."""
        token = PROCESS.set(self._process(name))
        try:
            yield
        finally:
            PROCESS.reset(token)

    def _process(self, name: str) -> Process:
        found = self._hosts.get(name)
        if found is None:
            host = self.network.host(name)
            found = self._hosts[name] = host.process = copy_context().run(Process, host)
        return found

    # -------------------------------------------------------------- what goes wrong

    def _log(self, _logger: object, method: str, event: dict[str, Any]) -> dict[str, Any]:
        if self.loop.is_closed():
            raise structlog.DropEvent
        process = PROCESS.get(self.loop.kernel).name
        failure = event.get("exc_info")
        text = " ".join([str(event.get("event")), *(f"{k}={v}" for k, v in event.items() if k != "event")])
        if self._verbose:
            self.lines.append(f"{self.loop.now:10.4f} {process:12} {method:8} {text}")
        if _LEVELS.get(method, 50) >= _LEVELS["error"]:
            known = failure if isinstance(failure, BaseException) else None
            self.complaints.append(Complaint(self.loop.now, process, text, known))
        raise structlog.DropEvent

    def _fault(self, context: dict[str, Any]) -> None:
        process = PROCESS.get(self.loop.kernel).name
        text, failure = f"{context.get('message')}: {context.get('exception')!r}", context.get("exception")
        self.complaints.append(Complaint(self.loop.now, process, text, failure))
        if self._verbose:
            self.lines.append(f"{self.loop.now:10.4f} {process:12} fault    {text}")

    # -------------------------------------------------------------- the end

    def _close(self) -> None:
        """Ends what still runs, without any effect: nothing may be found later, by another world or the collector."""
        asyncio.events._set_running_loop(self.loop)
        former, sys.unraisablehook = sys.unraisablehook, _nothing
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.loop.kill_all()
                for _ in range(3):
                    for task in self.loop.unfinished():
                        _end(task)
                self.loop.forget()
                gc.collect()
        finally:
            asyncio.events._set_running_loop(None)
            sys.unraisablehook = former
        shutil.rmtree(self._folder, ignore_errors=True)


def _nothing(_unraisable: object) -> None:
    """A coroutine that was ended before it began has nothing to say."""


def _end(task: asyncio.Task[Any]) -> None:
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    with contextlib.suppress(Exception):
        task.get_coro().close()  # type: ignore[union-attr]


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
