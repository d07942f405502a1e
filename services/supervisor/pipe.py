"""The pipe that a process writes to, as its keeper reads it."""

from __future__ import annotations

import asyncio
from typing import IO


class _Output(asyncio.StreamReaderProtocol):
    """Closes the pipe at its end."""

    def eof_received(self) -> bool:
        super().eof_received()
        return False


async def reader_of(pipe: IO[bytes]) -> asyncio.StreamReader:
    """What comes out of a pipe, which is closed at its end."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: _Output(reader), pipe)
    return reader
