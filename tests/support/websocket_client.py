"""A client's side of a WebSocket, as the two streams that asyncio gives of a socket."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Pong, RejectConnection, Request


class Refused(Exception):
    """The server's status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class WebSocketStreams:
    """`reader` gives what binary messages have; this one takes what a StreamWriter does."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, piece: int) -> None:
        """What is written goes in frames of `piece` bytes; 0: of any size."""
        self.reader = asyncio.StreamReader()
        self.frames = WSConnection(ConnectionType.CLIENT)
        self.pongs: list[bytes] = []
        self.close_code: int | None = None
        self._from, self._to = reader, writer
        self._piece = piece
        self.transport = writer.transport

    @classmethod
    async def open(
        cls, port: int, *, origin: str = "", subprotocols: tuple[str, ...] = ("amqp",), piece: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> WebSocketStreams:  # fmt: skip
        """Raises Refused."""
        host = "localhost" if tls else None
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=host)
        streams = cls(reader, writer, piece)
        headers = [(b"Origin", origin.encode())] if origin else []
        request = Request("localhost", "/", subprotocols=list(subprotocols), extra_headers=headers)
        writer.write(streams.frames.send(request))
        await streams._accepted()
        streams._task = asyncio.get_running_loop().create_task(streams._read())
        return streams

    async def _accepted(self) -> None:
        while True:
            self.frames.receive_data(await self._from.read(1 << 16) or None)
            for event in self.frames.events():
                if isinstance(event, AcceptConnection):
                    return
                if isinstance(event, RejectConnection):
                    self._to.close()
                    raise Refused(event.status_code)

    async def _read(self) -> None:
        while data := await self._from.read(1 << 16):
            self.frames.receive_data(data)
            for event in self.frames.events():
                if isinstance(event, BytesMessage):
                    self.reader.feed_data(bytes(event.data))
                elif isinstance(event, Pong):
                    self.pongs.append(bytes(event.payload))
                elif isinstance(event, CloseConnection):
                    self.close_code = event.code
        self.reader.feed_eof()

    def send(self, event: Any) -> None:
        """Anything else of the protocol."""
        self._to.write(self.frames.send(event))

    def write(self, data: bytes) -> None:
        size = self._piece or len(data)
        for first in range(0, len(data), size):
            last = first + size >= len(data)
            self.send(BytesMessage(data[first : first + size], message_finished=last))

    def raw(self, data: bytes) -> None:
        """Bytes that are perhaps no frame."""
        self._to.write(data)

    async def drain(self) -> None:
        await self._to.drain()

    def is_closing(self) -> bool:
        return self._to.is_closing()

    def close(self) -> None:
        self._to.close()

    def get_extra_info(self, name: str) -> Any:
        return self._to.get_extra_info(name)
