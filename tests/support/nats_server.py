"""A real NATS server on a loopback port, to be killed and started again."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from services.common.bus.server import command
from services.supervisor.nats import is_serving
from tests.support.ports import free_port
from tests.support.stack import HOST


class NatsServer:
    """Always on the same port."""

    def __init__(self, folder: Path) -> None:
        self.address = f"nats://{HOST}:{free_port()}"
        self.command: tuple[str, ...] = ()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Returns when it says hello."""
        self.command = command(self._folder, HOST, int(self.address.rpartition(":")[2]))
        log = ("--log", self._folder / "nats.log")
        self._process = subprocess.Popen([*self.command, *log])  # noqa: ASYNC220 - a moment, in a test
        async with asyncio.timeout(10):
            while not await is_serving(self.address):
                await asyncio.sleep(0.02)

    def kill(self) -> None:
        """kill -9."""
        if self._process:
            with suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """SIGSTOP: its socket is open, and it does not answer; returns when no thread of it runs."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)
        threads = Path(f"/proc/{self._process.pid}/task")
        while any(each.read_text().rpartition(") ")[2][0] != "T" for each in threads.glob("*/stat")):
            time.sleep(0.001)

    def resume(self) -> None:
        """SIGCONT."""
        assert self._process
        self._process.send_signal(signal.SIGCONT)
