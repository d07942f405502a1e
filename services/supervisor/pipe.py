"""Reads the pipe that a child process writes to."""

from __future__ import annotations

import asyncio
from typing import IO


class _Output(asyncio.StreamReaderProtocol):
    """Closes the pipe at the end of the output."""

    def eof_received(self) -> bool:
        super().eof_received()
        return False


async def reader_of(pipe: IO[bytes]) -> asyncio.StreamReader:
    """A reader of a pipe; the pipe is closed at the end of the output."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: _Output(reader), pipe)
    return reader
