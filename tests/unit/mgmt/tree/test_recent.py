"""What is asked of many is asked once for all who want it."""

from __future__ import annotations

import asyncio

from services.mgmt.tree.recent import Recent


class _Asked(Recent):
    """Each answer waits for `answers`."""

    def __init__(self) -> None:
        super().__init__()
        self.times = 0
        self.answers = asyncio.Event()
        self.answers.set()

    async def _ask(self) -> None:
        self.times += 1
        await self.answers.wait()


async def test_once_for_all() -> None:
    """Whoever wants it while it is asked for waits for that answer; afterwards it is good for a while."""
    asked = _Asked()
    asked.answers.clear()
    waiting = [asyncio.create_task(asked.recent()) for _ in range(3)]
    await asyncio.sleep(0)
    asked.answers.set()
    await asyncio.gather(*waiting)
    await asked.recent()
    assert asked.times == 1


async def test_of_this_moment() -> None:
    """What is there already is not good enough."""
    asked = _Asked()
    await asked.recent()
    await asked.now()
    assert asked.times == 2


async def test_what_is_young_enough_is_not_waited_for() -> None:
    """Neither while somebody else wants a younger one, which may take its time."""
    asked = _Asked()
    await asked.recent()
    asked.answers.clear()
    other = asyncio.create_task(asked.now())
    await asyncio.sleep(0)
    await asyncio.wait_for(asked.recent(), 1)
    other.cancel()


async def test_one_who_goes_away() -> None:
    """Leaves nobody without an answer who waits for the same."""
    asked = _Asked()
    asked.answers.clear()
    first, second = (asyncio.create_task(asked.recent()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    asked.answers.set()
    await second
    assert asked.times == 2
