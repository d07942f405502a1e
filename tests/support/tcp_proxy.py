"""A way to a server on which bytes get lost, or late."""

from __future__ import annotations

import asyncio
import enum
from contextlib import suppress


class Fault(enum.Enum):
    """What becomes of the next request, on whichever connection it is; all of them end for the client."""

    LOSE_REQUEST = "the server never gets it"
    LOSE_ANSWER = "the server does it, and the client never hears of it"
    DELAY_REQUEST = "the server gets it when it is let go"


class Proxy:
    """Of one server on loopback; `port` leads there."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self.fault: Fault | None = None
        self.struck = asyncio.Event()
        self._target = target
        self._late: list[tuple[asyncio.StreamWriter, bytes]] = []
        self._server: asyncio.Server | None = None
        self._ways: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server
        self._server.close()
        for way in self._ways:
            way.cancel()
        await asyncio.gather(*self._ways, return_exceptions=True)
        for writer in self._writers:
            await _close(writer)

    def strike(self, fault: Fault) -> None:
        self.fault = fault
        self.struck.clear()

    async def let_go(self) -> None:
        """What was delayed comes to the server now."""
        for writer, data in self._late:
            writer.write(data)
            await writer.drain()
        self._late.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, onwards = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers += [writer, onwards]
        for way in (self._requests(reader, onwards, writer), self._answers(there, writer)):
            task = asyncio.ensure_future(way)
            self._ways.add(task)
            task.add_done_callback(self._ways.discard)

    async def _requests(
        self, reader: asyncio.StreamReader, onwards: asyncio.StreamWriter, client: asyncio.StreamWriter
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                if self.fault is Fault.LOSE_REQUEST:
                    self._hit(client)
                    break
                if self.fault is Fault.DELAY_REQUEST:
                    self._late.append((onwards, data))
                    self._hit(client)
                    return  # and the server sees nothing of the end
                onwards.write(data)
                await onwards.drain()
        onwards.close()

    async def _answers(self, there: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await there.read(1 << 16):
                if self.fault is Fault.LOSE_ANSWER:
                    self._hit(client)
                if not client.is_closing():
                    client.write(data)
                    await client.drain()
        client.close()

    def _hit(self, client: asyncio.StreamWriter) -> None:
        self.fault = None
        self.struck.set()
        client.transport.abort()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
