"""What the host of an address is called, for rules that ask for it.

The name that an address claims counts where that name has the address, too, as in Java, which Broker-J asks. Threads of
their own wait for it, few: a resolver that does not answer holds up nothing else.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv6Address, ip_address

_PATIENCE = 1.0  # seconds
_THREADS = ThreadPoolExecutor(2, thread_name_prefix="host names")


async def host_name(address: str) -> str:
    """Empty where no name is told, or another address has that name."""
    try:
        async with asyncio.timeout(_PATIENCE):
            return await asyncio.get_running_loop().run_in_executor(_THREADS, _confirmed, address)
    except (OSError, ValueError, TimeoutError):
        return ""


def _confirmed(address: str) -> str:
    name, _ = socket.getnameinfo((address, 0), socket.NI_NAMEREQD)
    its = {_plain(str(at[0])) for *_, at in socket.getaddrinfo(name, None)}
    return name if _plain(address) in its else ""


def _plain(address: str) -> IPv4Address | IPv6Address:
    parsed = ip_address(address.partition("%")[0])
    return parsed.ipv4_mapped or parsed if isinstance(parsed, IPv6Address) else parsed
