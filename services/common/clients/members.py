"""Queue processes by the names that operators use: the member's, its container's, or the beginning of one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from services.common.clients.partition_table import ROLE
from services.common.errors import NotFound, PreconditionFailed

_LOOK_UP = 1.0  # seconds

HostName = Callable[[str], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Named:
    """A queue process; `container` is the network's name for its address, or empty."""

    member: str
    address: str
    container: str = ""

    @property
    def name(self) -> str:
        """The name it was started with; each run of it is another member."""
        return self.member.rpartition("-")[0]

    @property
    def host(self) -> str:
        """The host part of its name: a container's id or a pod's name, unless an operator chose another."""
        return self.name.removeprefix(f"{ROLE}-")

    @property
    def shown(self) -> str:
        """The member, with its container if that is known."""
        return f"{self.member} ({self.container})" if self.container else self.member


# The ways in which a name may fit, the surest first: the first way that fits any member counts.
_FITS: tuple[Callable[[Named, str], bool], ...] = (
    lambda one, to: to in {one.member, one.name, one.address, _ip(one.address)},
    lambda one, to: to in {one.host, one.container},
    lambda one, to: any(_plain(each).endswith(f"-{_plain(to)}") for each in (one.name, one.container)),
    lambda one, to: any(each.startswith(to) for each in (one.member, one.host, one.container)),
)


async def named(to: str, members: Mapping[str, str], host_name: HostName | None = None) -> str:
    """The member that `to` names, among those alive with their addresses; `host_name` looks up names of addresses.

    Raises NotFound or PreconditionFailed, which list the members that `to` may mean.
    """
    if any(_FITS[0](Named(member, address), to) for member, address in members.items()):
        return find(to, members, {})  # no look-up is needed, which may stay unanswered
    return find(to, members, await containers_of(list(members.values()), host_name))


def find(to: str, members: Mapping[str, str], containers: Mapping[str, str]) -> str:
    """As `named`; `containers` maps addresses to their names."""
    alive = [Named(member, address, containers.get(address, "")) for member, address in sorted(members.items())]
    found = next((fit for fits in _FITS if to and (fit := [one for one in alive if fits(one, to)])), [])
    if not found:
        raise NotFound(
            f"no queue process '{to}'; there are: {_shown(alive)}; one that is starting comes when it is ready"
        )
    if len(found) > 1:
        raise PreconditionFailed(f"'{to}' may be any of: {_shown(found)}")
    return found[0].member


async def containers_of(addresses: list[str], host_name: HostName | None = None) -> dict[str, str]:
    """The name server's names of those that have an IP address; addresses that it does not know are left out."""
    remote = [address for address in addresses if _ip(address)]
    names = await asyncio.gather(*(_container(_ip(address), host_name or _ask) for address in remote))
    return {address: name for address, name in zip(remote, names, strict=True) if name}


async def _container(ip: str, host_name: HostName) -> str:
    try:
        async with asyncio.timeout(_LOOK_UP):
            return (await host_name(ip)).partition(".")[0]
    except OSError:  # no server knows the address; TimeoutError is an OSError
        return ""


async def _ask(ip: str) -> str:
    # Docker's and a cluster's name servers answer with "container.network", or "pod.service…".
    host, _ = await asyncio.get_running_loop().getnameinfo((ip, 0), socket.NI_NAMEREQD)
    return host


def _ip(address: str) -> str:
    """The IP address in host:port; empty for a socket's path, or a name."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        ip = ip_address(host)
    except ValueError:
        return ""
    return "" if ip.is_loopback else str(ip)


def _plain(name: str) -> str:
    """docker-compose 1 joins the parts of a name with _, version 2 with -."""
    return name.replace("_", "-")


def _shown(members: list[Named]) -> str:
    return ", ".join(one.shown for one in members) or "none"
