"""One process of the cluster over all of its lives: started, killed, stopped, started again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import structlog

from services.common.errors import BrokerError
from services.common.runtime import CannotStart, Service
from tests.simulation.world.addresses import Network
from tests.simulation.world.processes import Host, Process

log = structlog.get_logger()

# What a process says and ends of, as the command line does.
_ORDINARY = (BrokerError, OSError, CannotStart)
_LONGEST_FUSE = 0.003  # seconds within which a process that is to be killed dies
_STOP_SECONDS = 15.0  # after which one that does not stop is killed


class Supervised:
    """`create` makes the service, as its process; `running` is the one that runs, once it serves."""

    def __init__(self, network: Network, name: str, create: Callable[[Host], Service]) -> None:
        self.name = name
        self.host = network.host(name)
        self.wanted = True  # it is started again when it ends by itself
        self.for_good = False
        self.running: Any = None
        self.lives = 0
        self._network = network
        self._loop = network.loop
        self._create = create
        self._process: Process | None = None
        self._stopping: asyncio.Event | None = None

    @property
    def process(self) -> Process | None:
        """The one that lives."""
        return self._process

    def start(self) -> None:
        """Begins a life unless there is one; one that is being stopped is followed by another."""
        self.wanted = not self.for_good
        if self._process is None and self.wanted:
            self.lives += 1
            self._network.move_in(self.host)
            process = self._process = self.host.process = Process(self.host)
            process.on_death[self._died] = None
            self._loop.soon(process, self._begin, process)

    def kill(self) -> None:
        """At one of its next awaits."""
        self.wanted = False
        self.running = None
        process = self._process
        if process is None:
            return
        draw = self._network.random.random
        if draw() < 0.3:
            process.die()
        else:
            process.fuse = process.fuse or 1 + int(40 * draw() ** 2)
            self._loop.after(_LONGEST_FUSE * draw(), self._loop.kernel, process.die)

    def stop(self) -> None:
        """SIGTERM; SIGKILL when that does not help."""
        self.wanted = False
        self.running = None
        if process := self._process:
            self._loop.soon(process, process.terminate)
            self._loop.after(_STOP_SECONDS, self._loop.kernel, process.die)

    def _died(self) -> None:
        self._process = self.running = None
        self._network.move_out(self.host)
        if self.wanted:
            self._loop.after(self._network.shape.restart, self._loop.kernel, self._again, self.lives)

    def _again(self, life: int) -> None:
        if self.wanted and self.lives == life:
            self.start()

    def _begin(self, process: Process) -> None:
        asyncio.get_running_loop().create_task(self._live(process), name=f"main of {self.name}")

    async def _live(self, process: Process) -> None:
        stopping = asyncio.Event()
        process.on_terminate = stopping.set
        try:
            service = self._create(self.host)
            if await self._started(service, stopping):
                self.running = service if self.wanted else None
                await stopping.wait()
                await service.stop()
        except _ORDINARY as failure:
            log.warning("cannot run", reason=str(failure))
        except Exception as failure:  # noqa: BLE001 - the process ends of it
            self._loop.call_exception_handler({"message": f"{self.name} ends", "exception": failure})
        process.die()

    @staticmethod
    async def _started(service: Service, stopping: asyncio.Event) -> bool:
        starting = asyncio.ensure_future(service.start())
        asked = asyncio.ensure_future(stopping.wait())
        await asyncio.wait([starting, asked], return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if starting.done():
            starting.result()
            return True
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting
        return False
