"""Reading many entry batches, some at a time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from services.store.provider import StoredBatch

BATCHES = 512  # that are looked for at once; in memory are as many as a provider reads of these
_SORTED_AT_ONCE: Final = 1 << 15  # a few milliseconds of work


def in_turns(ascending: Iterable[Sequence[int]]) -> Iterator[list[int]]:
    """All numbers of some sequences, which ascend, in order, so many at a time that it holds nobody up."""
    left = [(some, 0) for some in ascending if some]
    while left:
        step = max(1, _SORTED_AT_ONCE // len(left))
        upto = min(some[min(at + step, len(some)) - 1] for some, at in left)
        cuts = [(some, at, bisect_right(some, upto, at)) for some, at in left]
        yield sorted(chain.from_iterable(some[at:end] for some, at, end in cuts))
        left = [(some, end) for some, _, end in cuts if end < len(some)]


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
