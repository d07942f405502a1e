"""Whoever waits for something about a call to change."""

from __future__ import annotations

import asyncio


class Waiters(list[asyncio.Future[None]]):
    """All of them look again when something has changed: several tasks may read, write, and wait for the end.

    Empty, and so false, while nobody waits.
    """

    __slots__ = ()

    def wake(self) -> None:
        """Something has changed."""
        futures = self[:]
        self.clear()
        for future in futures:
            if not future.done():
                future.set_result(None)

    async def change(self) -> None:
        """Returns when something has changed."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.append(future)
        await future
