"""Work at the end of a turn."""

from __future__ import annotations

import asyncio

from services.common.streams.soon import Soon


async def test_once_a_turn() -> None:
    """However often it is asked for, the work is done once, and not before the turn ends."""
    done: list[int] = []
    soon = Soon(lambda: done.append(1))
    soon()
    soon()
    assert not done
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert done == [1]


async def test_what_was_done_is_not_done_again() -> None:
    """Work that was done at once is left out at the end of the turn, unless it was asked for again."""
    done: list[int] = []
    soon = Soon(lambda: done.append(1))
    soon()
    soon.now()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert done == [1]
    soon.now()
    soon()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert done == [1, 1, 1]
