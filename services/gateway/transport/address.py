"""The address of a peer, as text for people."""

from __future__ import annotations

import asyncio
from typing import Final

from services.common.ports.port import host_and_port

GONE: Final = "gone"
"""The address of a peer that reset its socket before it was accepted: none, and no loopback address above all."""


def peer_of(transport: asyncio.BaseTransport) -> tuple[str, str]:
    """host:port, and the host alone; both are GONE where the kernel does not know them any more."""
    peer = transport.get_extra_info("peername")
    return (written(peer), peer[0]) if peer else (GONE, GONE)


def written(address: tuple[str, int]) -> str:
    """host:port for a socket's address; an IPv6 address in brackets."""
    return host_and_port(*address[:2])  # IPv6 has more
