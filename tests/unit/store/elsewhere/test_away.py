"""What keeps the data goes away under a store that runs, and comes back: commits wait, and nothing else does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.elsewhere import Place
from tests.support.publisher import Publisher
from tests.support.store_house import House, enqueue
from tests.support.unwritable import told


@pytest.fixture
async def house(place: Place, url: str, tmp_path: Path) -> AsyncIterator[House]:
    house = House(place.name, tmp_path, lambda _: place.provider(url), lasting=True)
    await house.start()
    yield house
    await house.stop()


@pytest.mark.parametrize("hard", [False, True])
async def test_stopped_under_commits(place: Place, house: House, hard: bool) -> None:
    """Whether it says goodbye or not: what waited is there when it is back, once, without a restart; it is said why."""
    publisher = Publisher(house)
    await publisher.more(50)
    await asyncio.to_thread(place.stop, hard=hard)
    assert "is away since 20" in await told(house, "is away since")
    confirmed = publisher.confirmed()
    await asyncio.sleep(1.2)  # some attempts
    assert publisher.confirmed() == confirmed
    renewed = await asyncio.wait_for(house.acquire(), 20)  # renewals, and what memory has, do not wait
    assert renewed == {}
    await asyncio.to_thread(place.start)
    assert not await told(house, "")
    await publisher.more(50)
    await publisher.stop()
    assert await house.alive() == publisher.expected()
    await house.restart()
    assert await house.alive() == publisher.expected()


async def test_no_commits(place: Place, house: House) -> None:
    """An idle store says it too, and that it is over."""
    await asyncio.to_thread(place.stop)
    house.engine._disk.look()
    async with asyncio.timeout(20):
        while "is away since" not in house.provider.trouble():
            await asyncio.sleep(0.05)
    await asyncio.wait_for(told(house, "is away since"), 5)
    await asyncio.to_thread(place.start)
    await asyncio.wait_for(told(house, ""), 20)
    assert not house.provider.trouble()


async def test_a_recovery_waits(place: Place, house: House) -> None:
    """An owner that takes a partition over while it is away gets all of it, later."""
    await house.append(enqueue(10, 3))
    await house.alive()
    if kept := getattr(house.provider, "_bodies", None):
        kept._kept.clear()
    await asyncio.to_thread(place.stop)
    recovering: asyncio.Future[Any] = asyncio.ensure_future(house.alive())
    await asyncio.sleep(0.6)
    assert not recovering.done()
    await asyncio.to_thread(place.start)
    assert await asyncio.wait_for(recovering, 20) == {10: [0, 1, 2]}
