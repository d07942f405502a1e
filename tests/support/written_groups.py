"""Commit groups for a provider that may be away, and what it has of them."""

from __future__ import annotations

import asyncio

from services.store.provider import Changes, EntryRow, Provider
from services.store.providers.standing import Away
from tests.support.read_back import batches_of


def group(number: int, size: int = 7) -> Changes:
    """A batch, as a publisher's, with a content of so many bytes."""
    entry = EntryRow(number, 1, number, 1, b"entries")
    columns = str(number).encode().ljust(size, b".")
    return Changes(contents={number: columns}, entries={number: entry}, writers={7: number})


def dead(*numbers: int) -> Changes:
    """What was in such groups goes."""
    return Changes(dead_batches=list(numbers), dead_contents=list(numbers))


async def commit(provider: Provider, changes: Changes) -> int:
    """As the committer does: the same again until it is there. Gives how often that was not at once."""
    failures = 0
    while True:
        try:
            await provider.commit(changes)
        except Away:
            failures += 1
            await asyncio.sleep(0.02)
        else:
            return failures


async def alive(provider: Provider) -> dict[int, bytes]:
    """Batch → columns of its content."""
    return {batch.entry.id: batch.columns async for batch in batches_of(provider, 1)}
