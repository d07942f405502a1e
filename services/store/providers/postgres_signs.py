"""That a process lives, while something large is on its way to the session that writes.

As long as the server reads that, it shows that session as one that does nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.common.runtime import Tasks
from services.store.providers import postgres_session as session
from services.store.providers.postgres_session import within

_ANSWER_SECONDS = 5.0
_PAUSE_SECONDS = 1.5  # also before the first: most is there sooner


@asynccontextmanager
async def signs(url: str, owner: int) -> AsyncIterator[None]:
    """Another session of `owner` does something now and then meanwhile. Nobody hears of it where that fails."""
    tasks = Tasks()
    tasks.start(_give(url, owner), "signs of life")
    try:
        yield
    finally:
        await tasks.stop()


async def _give(url: str, owner: int) -> None:
    while True:
        await asyncio.sleep(_PAUSE_SECONDS)
        try:
            await _give_by_one(url, owner)
        except Exception as failure:
            if not session.lost(failure):
                raise


async def _give_by_one(url: str, owner: int) -> None:
    connection = await session.connect(url)
    try:
        while True:
            # Held once or often, it goes with the session.
            lock = connection.execute("SELECT pg_advisory_lock_shared($1)", owner)
            await within(_ANSWER_SECONDS, connection, lock)
            await asyncio.sleep(_PAUSE_SECONDS)
    finally:
        connection.terminate()
