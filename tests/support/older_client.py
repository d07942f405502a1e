"""A client of AMQP 0-8 or 0-9 by bytes: sends methods, and reads frames one by one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Self

from tests.support.raw_amqp import method, short

_PROPERTIES = bytes(4)
OPENED = b"\x00\x0a\x00\x29"
"""connection.open-ok."""


class OlderClient:
    """Connected, with channel 1, inside of `async with`; as guest, or as another user with the password `secret`."""

    def __init__(
        self, port: int, header: bytes = b"AMQP\x01\x01\x00\x09", client_properties: bytes = _PROPERTIES,
        user: str = "guest", virtual_host: str = "/",
    ) -> None:  # fmt: skip
        """`client_properties` are a field table."""
        self._login = f"\0{user}\0{'guest' if user == 'guest' else 'secret'}".encode()
        self._virtual_host = virtual_host
        self._port = port
        self._header = header
        self._client_properties = client_properties
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self.server_properties = b""

    async def __aenter__(self) -> Self:
        assert (await self.opens(self._virtual_host, self._login))[:4] == OPENED
        assert (await self.asks(method(20, 10, b"\0")))[:4] == b"\x00\x14\x00\x0b"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def opens(self, virtual_host: str, login: bytes) -> bytes:
        """What is answered to connection.open, behind a sign-in that succeeds."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        self.server_properties = await self.asks(self._header)
        start_ok = self._client_properties + short("PLAIN") + len(login).to_bytes(4) + login + short("en_US")
        tune = await self.asks(method(10, 11, start_ok, channel=0))
        opening = method(10, 31, tune[4:], channel=0) + method(10, 40, short(virtual_host) + b"\0\0", channel=0)
        return await self.asks(opening)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def read(self) -> bytes:
        """The payload of the next frame."""
        async with asyncio.timeout(10):
            head = await self._reader.readexactly(7)
            return (await self._reader.readexactly(int.from_bytes(head[3:7]) + 1))[:-1]

    async def frames(self) -> AsyncIterator[bytes]:
        """Their payloads, as they come."""
        while True:
            yield await self.read()

    async def asks(self, data: bytes) -> bytes:
        """The first frame that is said then."""
        self.send(data)
        return await self.read()
