"""Trusted balancers, which may say where a client is: addresses, networks and host names (HOPLINE_PROXY_SOURCES).

A name is looked up as connections come, once a second at most: a balancer in a container has another address whenever
the container is recreated. Until that is known it counts as a client, and its header is refused as no protocol's.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from services.common.config import Network
    from services.common.runtime import Tasks

_NO_SUCH_NAME = frozenset((socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)))
_EVERY = 1.0  # seconds

Address = IPv4Address | IPv6Address


def address_of(host: str) -> Address | None:
    """The IP address, or None where there is none (a unix socket). An IPv4-mapped IPv6 address gives the IPv4 one."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


class Balancers:
    """The trusted balancers of one gateway; false where there are none."""

    def __init__(self, sources: Sequence[Network | str], tasks: Tasks) -> None:
        self._networks = [each for each in sources if not isinstance(each, str)]
        self._names = [each for each in sources if isinstance(each, str)]
        self._tasks = tasks
        self._found: dict[str, list[Address]] = {}  # by name
        self._looked: float | None = None
        self._looking = False

    def __bool__(self) -> bool:
        return bool(self._networks or self._names)

    def has(self, host: str) -> bool:
        """Whether `host` is a balancer: its connections have to begin with a header."""
        address = address_of(host)
        if self._names:
            self._look_soon()
        if address is None:
            return False
        found = any(address in addresses for addresses in self._found.values())
        return found or any(address in network for network in self._networks)

    def _look_soon(self) -> None:
        now = asyncio.get_running_loop().time()
        if not self._looking and (self._looked is None or now - self._looked >= _EVERY):
            self._looked, self._looking = now, True
            self._tasks.start(self._look(), name="look balancers up")

    async def _look(self) -> None:
        try:
            found = await asyncio.gather(*map(_addresses_of, self._names))
        finally:
            self._looking = False
        self._found |= {name: each for name, each in zip(self._names, found, strict=True) if each is not None}


async def _addresses_of(name: str) -> list[Address] | None:
    """The name's addresses; none if the name does not exist (it is not running), None if the look-up failed."""
    try:
        found = await _getaddrinfo(name)
    except socket.gaierror as failure:
        return [] if failure.errno in _NO_SUCH_NAME else None
    except (OSError, UnicodeError):
        return None
    return [address for *_, place in found if (address := address_of(str(place[0])))]


async def _getaddrinfo(name: str) -> list[Any]:
    return await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
