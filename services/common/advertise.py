"""The address at which other processes reach a server that listens on all interfaces."""

from __future__ import annotations

import asyncio
import socket

_EVERYWHERE = ("0.0.0.0", "[::]", "::", "*")  # noqa: S104 - recognised here, not bound


async def reachable_address(listens: str, peer: str) -> str:
    """The address at which `peer` (a gRPC target) and its neighbours reach a server that listens at `listens`.

    That is `listens` itself, unless it names every interface: then it is this machine's address on the way to `peer`.
    The address of a container cannot be known in advance. Raises OSError when there is no route to `peer`.
    """
    host, _, port = listens.rpartition(":")
    if listens.startswith("unix:") or host not in _EVERYWHERE:
        return listens
    own = await _address_towards(peer)
    return f"[{own}]:{port}" if ":" in own else f"{own}:{port}"


async def _address_towards(peer: str) -> str:
    host, _, port = peer.rpartition("/")[2].rpartition(":")
    # Connecting a datagram socket sends nothing: the kernel only chooses the route, and with it our address.
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(
        asyncio.DatagramProtocol, remote_addr=(host.strip("[]"), int(port))
    )
    try:
        sock: socket.socket = transport.get_extra_info("socket")
        return str(sock.getsockname()[0])
    finally:
        transport.close()
