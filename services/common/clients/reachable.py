"""Whether no process listens at an address: the peer is gone, as opposed to silent or out of reach.

Only for addresses of this machine can that be known, as its own kernel refuses the connection. On a network something
else may refuse it (a firewall, a service without endpoints, a machine that has the address by now), while the peer
lives and tells others that we are dead.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address

from services.common.streams.address import Address

_TIMEOUT = 1.0
_NOBODY = (ConnectionRefusedError, FileNotFoundError)


async def is_gone(target: str, within: float = _TIMEOUT) -> bool:
    """True only when it is certain, in time, that no process listens at this gRPC target."""
    try:
        address = Address.parse(target)
        if not _is_here(address):
            return False
        async with asyncio.timeout(within):
            await address.connect(asyncio.get_running_loop(), _Knock)
    except _NOBODY:
        return True
    except OSError:  # TimeoutError is an OSError
        return False
    return False


class _Knock(asyncio.BufferedProtocol):
    """The connection was accepted: a process listens."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()

    def get_buffer(self, sizehint: int) -> bytearray:
        return bytearray(max(sizehint, 1))


def _is_here(address: Address) -> bool:
    if address.path or address.host == "localhost":
        return True
    try:
        return ip_address(address.host).is_loopback
    except ValueError:
        return False
