"""How often it is others' turn while something is done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class OthersTurns:
    """A task beside what is tested."""

    def __init__(self) -> None:
        self.count = 0

    async def take(self) -> None:
        """Until it is cancelled."""
        while True:
            self.count += 1
            await asyncio.sleep(0)


@asynccontextmanager
async def others_turns() -> AsyncIterator[OthersTurns]:
    """Counts them from the next turn of the loop to the end of the block."""
    others = OthersTurns()
    task = asyncio.ensure_future(others.take())
    try:
        yield others
    finally:
        task.cancel()
