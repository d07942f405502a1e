"""A process that was executed from its command, by a process in which threads run."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import threading
from collections.abc import Mapping

from services.supervisor.pipe import reader_of
from services.supervisor.program import Program


class Executed:
    """As Process says."""

    def __init__(self, process: subprocess.Popen[bytes], stdout: asyncio.StreamReader) -> None:
        self.pid = process.pid
        self.stdout = stdout
        self._process = process
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._await_end, name=f"end of {process.pid}", daemon=True).start()

    @property
    def returncode(self) -> int | None:
        """As Process says."""
        return self._process.returncode

    async def wait(self) -> int:
        """As Process says."""
        await self._ended.wait()
        return self._process.wait()

    def send_signal(self, number: int, /) -> None:
        """As Process says."""
        self._process.send_signal(number)

    def _await_end(self) -> None:
        self._process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._ended.set)


async def execute(program: Program, environment: Mapping[str, str]) -> Executed:
    """As Start says, from its command. Raises OSError.

    By subprocess, which uses vfork. A process of uvloop's own is a fork, with what libraries do before and after one:
    gRPC's part of that crashes the child where gRPC's threads are at work.
    """
    process = subprocess.Popen(  # noqa: ASYNC220, S603 - a command of ours, executed in milliseconds
        program.command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
        env=dict(environment),
        # Ctrl-C goes to a terminal's whole process group, and the order of stopping is the supervisor's affair.
        start_new_session=True,
    )
    assert process.stdout
    return Executed(process, await reader_of(process.stdout))
