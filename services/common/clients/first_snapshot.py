"""Whether a watch of records has been applied as far as its first whole snapshot: before that, nothing is known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from services.rpc.store_pb2 import Records


class FirstSnapshots:
    """Those of several watches, which begin when they are followed."""

    def __init__(self) -> None:
        self._missing: list[asyncio.Event] = []

    def of(self, records: AsyncIterator[Records]) -> AsyncIterator[Records]:
        """Gives the same watch, to be followed: a batch counts as applied when the next one is asked for."""
        there = asyncio.Event()
        self._missing.append(there)
        return _noticed(records, there)

    async def known(self) -> None:
        """Returns when the first snapshot of each watch has been applied."""
        for there in self._missing:
            await there.wait()


async def _noticed(records: AsyncIterator[Records], there: asyncio.Event) -> AsyncIterator[Records]:
    async for batch in records:
        yield batch
        if batch.last or not batch.snapshot:
            there.set()
