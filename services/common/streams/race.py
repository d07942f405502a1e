"""Several ways to one thing: the next is begun when those before it have failed, or have not succeeded for a while.

So RFC 8305 ("Happy Eyeballs") has it for a name with several addresses: one that hangs does not keep us from others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


async def first_of(ways: Sequence[Callable[[], Awaitable[T]]], patience: float, drop: Callable[[T], object]) -> T:
    """What the first one gives that succeeds; the others are cancelled. `patience` in seconds.

    `drop` gets what another one gave in the same moment. Raises the OSError of the last one that failed, when all have.
    """
    under_way: set[asyncio.Future[T]] = set()
    failure: BaseException = OSError("it has no address")
    left = list(ways)
    try:
        while left or under_way:
            if left:
                under_way.add(asyncio.ensure_future(left.pop(0)()))
            done, under_way = await asyncio.wait(
                under_way, timeout=patience if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            won = [one.result() for one in done if not one.exception()]
            for other in won[1:]:
                drop(other)
            if won:
                return won[0]
            failure = next(iter(done)).exception() or failure if done else failure
        raise failure
    finally:
        for one in under_way:
            if not one.cancel() and not one.cancelled() and not one.exception():
                drop(one.result())  # it succeeded in the moment in which all was given up
