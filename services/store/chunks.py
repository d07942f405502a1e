"""Reading many entry batches, some at a time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from services.store.provider import StoredBatch

BATCHES = 512  # that are looked for at once; in memory are as many as a provider reads of these


async def in_chunks(
    numbers: Sequence[int], read: Callable[[Sequence[int]], Awaitable[list[StoredBatch]]]
) -> AsyncIterator[StoredBatch]:
    """The batches with these ids, which ascend; `read` gives as many of some as it likes, at least the first there."""
    start = 0
    while start < len(numbers):
        wanted = numbers[start : start + BATCHES]
        found = await read(wanted)
        for batch in found:
            yield batch
        # All of them, where none of the rest is there any more.
        start += bisect_right(wanted, found[-1].entry.id) if found else len(wanted)
