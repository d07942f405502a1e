"""Whether nobody listens at an address: the peer's process is gone, as opposed to silent or out of reach."""

from __future__ import annotations

import asyncio

_TIMEOUT = 1.0
_NOBODY = (ConnectionRefusedError, FileNotFoundError)


async def is_refused(address: str, within: float = _TIMEOUT) -> bool:
    """True only when the operating system says so, in time, for this gRPC target (`unix:path` or `host:port`)."""
    try:
        async with asyncio.timeout(within):
            writer = await _connect(address)
    except _NOBODY:
        return True
    except OSError:  # TimeoutError is one
        return False
    writer.close()
    return False


async def _connect(address: str) -> asyncio.StreamWriter:
    if address.startswith("unix:"):
        _, writer = await asyncio.open_unix_connection(address.removeprefix("unix:").removeprefix("//"))
        return writer
    host, _, port = address.rpartition("/")[2].rpartition(":")
    _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    return writer
