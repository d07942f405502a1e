"""TLS without a socket: a client whose bytes a test sends as it likes."""

from __future__ import annotations

import asyncio
import ssl

import pytest


class ByHand:
    """First `hello`, then `finish`, then `read`."""

    def __init__(self, context: ssl.SSLContext, name: str = "localhost") -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)

    def hello(self) -> bytes:
        """The first bytes of a client."""
        with pytest.raises(ssl.SSLWantReadError):
            self._tls.do_handshake()
        return self._outgoing.read()

    async def finish(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> None:
        """Shakes hands, and sends `data` in one piece with the last of that, where TLS allows it (1.3)."""
        while True:
            await self._hear(reader)
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                writer.write(self._outgoing.read())
                continue
            self._tls.write(data)
            writer.write(self._outgoing.read())
            return

    async def read(self, reader: asyncio.StreamReader, count: int) -> bytes:
        """So many bytes of what the server says, or fewer."""
        while True:
            try:
                return self._tls.read(count)
            except ssl.SSLWantReadError:
                await self._hear(reader)

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        heard = await reader.read(1 << 16)
        assert heard, "the server has ended the stream"
        self._incoming.write(heard)
