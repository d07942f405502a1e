"""Asks mgmt over HTTP for the health of a running stack: for `hopline health`, and for the ready line."""

from __future__ import annotations

import asyncio
import json
from typing import Any

_WILDCARDS = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104 - what is listened on, not a listener


def reachable(host: str) -> str:
    """The address under which a server that listens on `host` is found from its own machine."""
    return _WILDCARDS.get(host, host)


async def ask(host: str, port: int, seconds: float = 5.0) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of GET /healthz; raises OSError (TimeoutError too) when there is no answer."""
    async with asyncio.timeout(seconds):
        reader, writer = await asyncio.open_connection(reachable(host), port)
        try:
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
    try:
        return int(head.split(maxsplit=2)[1]), dict(json.loads(body))
    except (IndexError, ValueError) as error:
        raise ConnectionError(f"what listens on port {port} is not Hopline") from error
