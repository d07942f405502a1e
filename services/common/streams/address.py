"""gRPC targets as this project uses them: `unix:path`, `unix:///path`, `host:port`, `[::1]:port`, `dns:///host:port`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class Address:
    """Either a socket's path, or a host and a port."""

    path: str = ""
    host: str = ""
    port: int = 0

    @classmethod
    def parse(cls, target: str) -> Self:
        """Raises OSError for anything else."""
        if target.startswith("unix:"):
            if path := target.removeprefix("unix:").removeprefix("//"):
                return cls(path=path)
        else:
            host, _, port = target.rpartition("/")[2].rpartition(":")
            if port.isascii() and port.isdigit() and int(port[:6]) < 1 << 16:
                return cls(host=host.strip("[]*"), port=int(port))  # `*` means every interface, as an empty host does
        raise OSError(f"'{target}' is not an address: host:port or unix:path")

    async def connect(self, loop: asyncio.AbstractEventLoop, create: Callable[[], asyncio.BufferedProtocol]) -> None:
        """Raises OSError."""
        if self.path:
            await loop.create_unix_connection(create, self.path)
        else:
            await loop.create_connection(create, self.host, self.port)

    async def listen(
        self, loop: asyncio.AbstractEventLoop, create: Callable[[], asyncio.BufferedProtocol]
    ) -> asyncio.AbstractServer:
        """Raises OSError when the address is taken. Only the broker's own user has access to a socket's folder."""
        if not self.path:
            return await loop.create_server(create, self.host or None, self.port)
        Path(self.path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return await loop.create_unix_server(create, self.path)

    def remove(self) -> None:
        """Removes the socket's name, once no server listens."""
        if self.path:
            Path(self.path).unlink(missing_ok=True)
