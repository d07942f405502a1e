"""An AMQP 0-9-1 client up to tune, which says what tests want it to say of SASL."""

from __future__ import annotations

import asyncio
import ssl
import struct
from typing import Any, Self

from pamqp import commands, frame
from scramp import ScramClient

from tests.support.amqp_playbook import CAPABILITIES, HEADER
from tests.support.field_tables import sized
from tests.support.raw_amqp import method, short, table

_SECONDS = 10


class SaslClient:
    """One connection."""

    def __init__(
        self, port: int, source: str = "127.0.0.1", tls: ssl.SSLContext | None = None, before: bytes = b""
    ) -> None:
        """From `source`, an address of this machine: wrong passwords are counted by address. `before` comes first."""
        self._port = port
        self._tls = tls
        self._source = source
        self._before = before
        self.mechanisms: list[str] = []

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(
            "127.0.0.1",
            self._port,
            local_addr=(self._source, 0),
            ssl=self._tls,
            server_hostname="localhost" if self._tls else None,
        )
        self._writer.write(self._before + HEADER)
        start = await self.answer()
        assert isinstance(start, commands.Connection.Start)
        self.mechanisms = start.mechanisms.split()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.transport.abort()

    async def begin(self, mechanism: str, response: bytes) -> Any:
        """start-ok, and what is said to it."""
        capabilities = sized(b"", b"".join(short(name) + b"t\1" for name in CAPABILITIES))
        properties = table(capabilities=b"F" + capabilities)
        self._writer.write(method(10, 11, properties, short(mechanism), _long(response), short("en_US"), channel=0))
        return await self.answer()

    async def go_on(self, response: bytes) -> Any:
        """secure-ok, and what is said to it."""
        self._writer.write(method(10, 21, _long(response), channel=0))
        return await self.answer()

    async def prove(self, mechanism: str, user: str, password: str) -> Any:
        """SCRAM as far as secure with the broker's own proof, which is right, or what came in its place."""
        client = ScramClient([mechanism], user, password)
        secure = await self.begin(mechanism, client.get_client_first().encode())
        if not isinstance(secure, commands.Connection.Secure):
            return secure
        client.set_server_first(secure.challenge)
        secure = await self.go_on(client.get_client_final().encode())
        if isinstance(secure, commands.Connection.Secure):
            client.set_server_final(secure.challenge)
        return secure

    async def scram(self, mechanism: str, user: str, password: str) -> Any:
        """The whole exchange; gives tune, or what came in its place."""
        secure = await self.prove(mechanism, user, password)
        return await self.go_on(b"") if isinstance(secure, commands.Connection.Secure) else secure

    async def open(self, virtual_host: str = "/") -> Any:
        """After tune: tune-ok and open."""
        for each in (commands.Connection.TuneOk(0, 0, 0), commands.Connection.Open(virtual_host)):
            self._writer.write(frame.marshal(each, 0))
        return await self.answer()

    async def answer(self) -> Any:
        """The broker's next method."""
        async with asyncio.timeout(_SECONDS):
            head = await self._reader.readexactly(7)
            data = head + await self._reader.readexactly(int.from_bytes(head[3:], "big") + 1)
        return frame.unmarshal(data)[2]

    async def ended(self) -> bool:
        """Waits for the broker to end the connection."""
        async with asyncio.timeout(_SECONDS):
            return not await self._reader.read()


def _long(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value
