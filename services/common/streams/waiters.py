"""Whoever waits for something about a call to change."""

from __future__ import annotations

import asyncio


class Waiters:
    """All of them look again when something has changed: several tasks may read, write, and wait for the end."""

    __slots__ = ("_futures",)

    def __init__(self) -> None:
        self._futures: list[asyncio.Future[None]] = []

    def wake(self) -> None:
        """Something has changed."""
        futures, self._futures = self._futures, []
        for future in futures:
            if not future.done():
                future.set_result(None)

    async def change(self) -> None:
        """Returns when something has changed."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._futures.append(future)
        await future
