"""Listens at an address, at all addresses of a name or of the machine: IPv4 and IPv6, with one port number for both."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from ipaddress import ip_address

Listen = Callable[[str, int], Awaitable[asyncio.Server]]

_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - a broker serves its network
_ABSENT = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
_TRIES = 10


async def listen_at(host: str, port: int, listen: Listen) -> list[asyncio.Server]:
    """One server for each address of `host`; "" stands for all addresses of the machine, of both families.

    Addresses that the machine does not have, such as IPv6 ones where that is switched off, are left out; raises OSError
    when none is left, or the port is taken. Port 0 stands for one that is free at all addresses.
    """
    addresses = await _addresses_of(host)
    for _ in range(_TRIES - 1):
        try:
            return await _at_all(addresses, port, listen)
        except OSError as failure:
            if port or failure.errno != errno.EADDRINUSE:
                raise
    return await _at_all(addresses, port, listen)


async def _addresses_of(host: str) -> tuple[str, ...]:
    if not host:
        return _EVERYWHERE
    try:
        ip_address(host)
    except ValueError:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return tuple(dict.fromkeys(str(address[0]) for *_, address in found))
    return (host,)


async def _at_all(addresses: tuple[str, ...], port: int, listen: Listen) -> list[asyncio.Server]:
    servers: list[asyncio.Server] = []
    absent: OSError | None = None
    for address in addresses:
        try:
            server = await listen(address, port)
        except OSError as failure:
            if failure.errno not in _ABSENT:
                _close(servers)
                raise
            absent = failure
            continue
        if server.sockets:  # none, without an error, where the kernel does not know the family
            servers.append(server)
            port = port or server.sockets[0].getsockname()[1]
    if not servers:
        raise absent or OSError(errno.EAFNOSUPPORT, f"the machine has none of the addresses {', '.join(addresses)}")
    return servers


def _close(servers: list[asyncio.Server]) -> None:
    for server in servers:
        server.close()
