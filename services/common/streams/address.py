"""gRPC targets as this project uses them: `unix:path`, `unix:///path`, `host:port`, `[::1]:port`, `dns:///host:port`,
and several addresses of a service in one: `ipv4:host:port,host:port`.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Self

_LISTS = ("ipv4:", "ipv6:")


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

    @property
    def target(self) -> str:
        """As `parse` reads it."""
        if self.path:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_literal(self) -> bool:
        """Whether there is no name in it to be looked up."""
        try:
            return bool(self.path or not self.host or ip_address(self.host))
        except ValueError:
            return False

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
            every = self.host in ("", "::")  # of both families, as gRPC has it
            return await loop.create_server(create, None if every else self.host, self.port)
        Path(self.path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_served(self.path):  # the event loop would take the name away from who has it
            raise OSError(errno.EADDRINUSE, "another process listens there", self.path)
        return await loop.create_unix_server(create, self.path)

    def remove(self) -> None:
        """Removes the socket's name, once no server listens."""
        if self.path:
            Path(self.path).unlink(missing_ok=True)


def is_served(path: str | Path) -> bool:
    """Whether a process accepts connections at the socket of that name."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except BlockingIOError:
            return True  # its backlog is full
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        return True


def cannot_listen(target: str) -> str:
    """In words, for who runs a service."""
    if target.startswith("unix:"):
        why = "another process does, or its folder cannot be written; HOPLINE_…_ADDRESS names another place"
    else:
        why = "it is taken, or not an address of this machine"
    return f"cannot listen on {target}: {why}"


async def all_of(target: str) -> list[Address]:
    """Where the service may listen: every address that a name has, or that a list names. Raises OSError for none."""
    if target.startswith(_LISTS):
        return [Address.parse(each) for each in target.partition(":")[2].split(",")]
    address = Address.parse(target)
    if address.is_literal:
        return [address]
    found = await asyncio.get_running_loop().getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    return [Address(host=host, port=address.port) for host in sorted({str(name[0]) for *_, name in found})]
