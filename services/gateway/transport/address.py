"""Where a peer is, for people."""

from __future__ import annotations

import asyncio
from typing import Final

from services.common.ports.port import host_and_port

GONE: Final = "gone"
"""Where a peer is that has reset its socket before it was accepted: nowhere, least of all on this machine."""


def peer_of(transport: asyncio.BaseTransport) -> tuple[str, str]:
    """host:port, and the host alone; both are GONE where the kernel cannot tell any more."""
    peer = transport.get_extra_info("peername")
    return (written(peer), peer[0]) if peer else (GONE, GONE)


def written(address: tuple[str, int]) -> str:
    """host:port, of what a socket says of its peer; an IPv6 address in brackets."""
    return host_and_port(*address[:2])  # IPv6 has more
