"""Kills, cuts and moves of a stack under traffic, each told to the truth."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.fates.truth import Truth
    from tests.support.interop_proxy import Proxy
    from tests.support.stack import Stack

UNDER_LOAD_SECONDS = 1.0
_LEASE_IS_OVER = 3.0  # seconds


class Faults:
    """One after the other; each returns when the stack is healthy again."""

    def __init__(self, stack: Stack, proxy: Proxy, truth: Truth) -> None:
        self._stack = stack
        self._proxy = proxy
        self._truth = truth

    async def kill(self, service: str) -> None:
        """kill -9."""
        await asyncio.sleep(UNDER_LOAD_SECONDS)
        self._truth.died(service)
        pid = self._stack.kill(service)
        await asyncio.to_thread(self._stack.wait_until_replaced, service, pid)
        self._truth.died(f"{service} is back")

    async def cut(self) -> None:
        """Every connection of clients is reset."""
        await asyncio.sleep(UNDER_LOAD_SECONDS)
        self._truth.died("connections")
        self._proxy.cut()

    async def hold(self, service: str) -> None:
        """A process is as if cut off: it stands still until its leases are over, and then goes on."""
        await asyncio.sleep(UNDER_LOAD_SECONDS)
        pid = self._stack.pid(service)
        self._truth.died(service)
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(_LEASE_IS_OVER)
        os.kill(pid, signal.SIGCONT)
        self._truth.died(f"{service} is back")
        await asyncio.to_thread(self._stack.wait_until_healthy)

    async def move(self, to: str) -> None:
        """Half of the partitions are handed over, in good order."""
        await asyncio.sleep(UNDER_LOAD_SECONDS)
        command = [str(Path(sys.executable).with_name("hopline")), "partitions", "move", "0-31", to]
        environment = self._stack.command_environment()
        move = await asyncio.create_subprocess_exec(*command, env=environment, stdout=subprocess.DEVNULL)
        assert await move.wait() == 0
