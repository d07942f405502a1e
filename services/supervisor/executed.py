"""A process that was executed from its command, by a process that has threads."""

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
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits for it
            self._loop.call_soon_threadsafe(self._ended.set)


async def execute(program: Program, environment: Mapping[str, str]) -> Executed:
    """As Start says, from the program's command. Raises OSError.

    By subprocess, which uses vfork. uvloop's subprocesses use fork, and run the fork handlers of libraries: gRPC's
    crash the child while gRPC's threads are at work.
    """
    process = subprocess.Popen(  # noqa: ASYNC220, S603 - a command of ours, executed in milliseconds
        program.command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
        env=dict(environment),
        # Ctrl-C goes to a terminal's whole process group, but the supervisor decides the order of stopping.
        start_new_session=True,
    )
    assert process.stdout
    return Executed(process, await reader_of(process.stdout))
