"""A process that the fork server forked, and that became a child of this process."""

from __future__ import annotations

import asyncio
import os
import signal


class Forked:
    """As Process says."""

    returncode: int | None = None

    def __init__(self, pid: int, stdout: asyncio.StreamReader) -> None:
        """Raises OSError where the kernel has no pidfd_open (before Linux 5.3)."""
        self.pid = pid
        self.stdout = stdout
        self._descriptor = os.pidfd_open(pid)
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._descriptor, self._on_end)

    async def wait(self) -> int:
        """As Process says."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int, /) -> None:
        """As Process says."""
        if self.returncode is None:
            signal.pidfd_send_signal(self._descriptor, number)

    def _on_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        _, status = os.waitpid(self.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)
        os.close(self._descriptor)
        self._ended.set()
