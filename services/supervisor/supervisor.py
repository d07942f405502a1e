"""The life of the whole stack: starts all children, announces that it is ready, and stops them in order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence

import structlog

from services.supervisor.child import MEND, Child

log = structlog.get_logger()

GRACE = 10.0  # seconds that a child has to stop
_ECHO = 0.5  # seconds in which one Ctrl-C may come twice: to the process group, and passed on by make
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Supervisor:
    """Runs children by stages. They start together, since services wait for each other by themselves."""

    def __init__(self, stages: Sequence[Sequence[Child]], when_ready: Callable[[], Awaitable[None]]) -> None:
        """`when_ready` is called once, when every vital child has served."""
        self._stages = stages
        self._children = [child for stage in stages for child in stage]
        self._when_ready = when_ready
        self._stopping = asyncio.Event()
        self._asked_at = 0.0

    async def run(self) -> int:
        """Returns the exit status: 0 after a signal, 1 when a child could not be kept running."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_signal)
        for child in self._children:
            child.start()
        asked = loop.create_task(self._stopping.wait())
        ready = loop.create_task(self._announce())
        await asyncio.wait({asked, *(child.ended for child in self._children)}, return_when=asyncio.FIRST_COMPLETED)
        given_up = [] if self._stopping.is_set() else [child for child in self._children if child.ended.done()]
        ready.cancel()
        await self._stop()
        asked.cancel()
        await asyncio.gather(asked, ready, return_exceptions=True)
        for child in given_up:  # once more at the end of the log, where operators look
            why = child.ended.exception()
            what = "stopped, since a service cannot run"
            log.error(what, program=child.name, last=child.last_words, do=MEND, exc_info=why)
        return 1 if given_up else 0

    async def _announce(self) -> None:
        for child in self._children:
            if child.vital:
                await child.serving.wait()
        await self._when_ready()

    async def _stop(self) -> None:
        log.info("stopping")
        for stage in reversed(self._stages):
            await asyncio.gather(*(child.stop(GRACE) for child in stage))

    def _on_signal(self) -> None:
        now = asyncio.get_running_loop().time()
        if not self._asked_at:
            self._asked_at = now
            self._stopping.set()
        elif now - self._asked_at > _ECHO:
            log.info("asked to stop again, killing what still runs")
            for child in self._children:
                child.kill()
