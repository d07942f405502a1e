"""A TCP proxy before the broker whose connections can be cut: for libraries that hide their sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Self

from tests.support.interop_address import BrokerAddress

HOST = "127.0.0.1"


class Proxy:
    """Passes bytes both ways until `cut`."""

    def __init__(self, broker: BrokerAddress) -> None:
        self._broker = broker
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    @classmethod
    @asynccontextmanager
    async def running(cls, broker: BrokerAddress) -> AsyncIterator[Self]:
        """A proxy that listens, and no connection of it afterwards."""
        proxy = cls(broker)
        proxy._server = await asyncio.start_server(proxy._serve, HOST, 0)
        try:
            yield proxy
        finally:
            proxy._server.close()
            proxy.cut()
            if proxy._serving:
                await asyncio.wait(proxy._serving)

    @property
    def address(self) -> BrokerAddress:
        assert self._server
        return BrokerAddress(HOST, self._server.sockets[0].getsockname()[1])

    def cut(self) -> None:
        """Resets every connection; new ones are accepted."""
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        try:
            onward_reader, onward_writer = await asyncio.open_connection(self._broker.host, self._broker.port)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, onward_writer}
        self._writers |= both
        await asyncio.gather(_copy(reader, onward_writer), _copy(onward_reader, writer))
        self._writers -= both


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
