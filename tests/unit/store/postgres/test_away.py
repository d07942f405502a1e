"""The database goes away under a store that runs, and comes back: commits wait, and nothing else does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.store.providers.postgres import PostgresProvider
from tests.support.postgres import Cluster, cluster
from tests.support.publisher import Publisher
from tests.support.store_house import House, enqueue
from tests.support.unwritable import told


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """One that nobody else needs: it is stopped."""
    with cluster() as running:
        yield running


@pytest.fixture
async def house(own: Cluster, tmp_path: Path) -> AsyncIterator[House]:
    own.revive()
    url = own.new_database()
    house = House("postgres", tmp_path, lambda folder: PostgresProvider(folder, url), lasting=True)
    await house.start()
    yield house
    await house.stop()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_stopped_under_commits(own: Cluster, house: House, mode: str) -> None:
    """Whether it says goodbye or not: what waited is there when it is back, once, without a restart; it is said why."""
    publisher = Publisher(house)
    await publisher.more(50)
    await asyncio.to_thread(own.stop, mode)
    assert "is away since 20" in await told(house, "is away since")
    confirmed = publisher.confirmed()
    await asyncio.sleep(1.2)  # some attempts
    assert publisher.confirmed() == confirmed
    renewed = await asyncio.wait_for(house.acquire(), 1)  # renewals, and what memory has, do not wait
    assert renewed == {}
    await asyncio.to_thread(own.start)
    assert not await told(house, "")
    await publisher.more(50)
    await publisher.stop()
    assert await house.alive() == publisher.expected()
    await house.restart()
    assert await house.alive() == publisher.expected()


async def test_sessions_are_killed_under_commits(own: Cluster, house: House) -> None:
    """Its processes may die at any time; then it recovers, and the store with it."""
    publisher = Publisher(house)
    for _ in range(3):
        await publisher.more(30)
        await asyncio.to_thread(own.kill_sessions)
        await asyncio.to_thread(own.wait)
    await publisher.more(30)
    await publisher.stop()
    assert await house.alive() == publisher.expected()


async def test_nobody_commits(own: Cluster, house: House) -> None:
    """An idle store says it too, and that it is over."""
    await asyncio.to_thread(own.stop)
    house.engine._disk.look()
    async with asyncio.timeout(10):
        while "is away since" not in house.provider.trouble():
            await asyncio.sleep(0.05)
    await asyncio.wait_for(told(house, "is away since"), 5)
    await asyncio.to_thread(own.start)
    await asyncio.wait_for(told(house, ""), 10)
    assert not house.provider.trouble()


async def test_who_recovers_waits(own: Cluster, house: House) -> None:
    """An owner that takes a partition over while the database is away gets all of it, later."""
    await house.append(enqueue(10, 3))
    await house.alive()
    await asyncio.to_thread(own.stop)
    recovering: asyncio.Future[Any] = asyncio.ensure_future(house.alive())
    await asyncio.sleep(0.6)
    assert not recovering.done()
    await asyncio.to_thread(own.start)
    assert await asyncio.wait_for(recovering, 10) == {10: [0, 1, 2]}
