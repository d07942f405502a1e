"""Questions to the router, so many at a time.

What is answered together goes on in one turn, and all others wait for it: a thousand clients that ask for as much as
they are given would have a gateway to themselves.
"""

from __future__ import annotations

import asyncio

from services.common.errors import Unavailable
from services.gateway.owners.asking import PATIENCE

_AT_ONCE = 32


class Looking:
    """Around what only asks whether there is something, or most likely does: `async with`. Raises Unavailable."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def __aenter__(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._places.acquire()
        except TimeoutError:
            raise Unavailable("the router is away; try again") from None

    async def __aexit__(self, *_: object) -> None:
        self._places.release()
