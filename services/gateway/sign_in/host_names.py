"""What the host of an address is called, for rules that ask for it."""

from __future__ import annotations

import asyncio
import socket

_PATIENCE = 1.0  # seconds


async def host_name(address: str) -> str:
    """Empty where nobody says."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_PATIENCE):
            name, _ = await loop.getnameinfo((address, 0), socket.NI_NAMEREQD)
    except (OSError, TimeoutError):
        return ""
    return name
