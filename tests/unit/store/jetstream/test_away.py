"""The server goes away under a store that runs, and comes back: commits wait, and nothing else does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals
from typing import Any

import pytest

from services.store.providers.jetstream import JetStreamProvider
from tests.support.jetstream import Servers, alone
from tests.support.publisher import Publisher
from tests.support.store_house import House, enqueue
from tests.support.unwritable import told


@pytest.fixture(scope="module")
def own() -> Iterator[Servers]:
    """One that nobody else needs: it is stopped."""
    with alone() as running:
        yield running


@pytest.fixture
async def house(own: Servers, tmp_path: Path) -> AsyncIterator[House]:
    own.start()
    url = own.url()
    house = House("jetstream", tmp_path, lambda folder: JetStreamProvider(folder, url), lasting=True)
    await house.start()
    yield house
    await house.stop()


@pytest.mark.parametrize("how", [SIGTERM, SIGKILL])
async def test_stopped_under_commits(own: Servers, house: House, how: Signals) -> None:
    """Whether it says goodbye or not: what waited is there when it is back, once, without a restart; it is said why."""
    publisher = Publisher(house)
    await publisher.more(50)
    await asyncio.to_thread(own.each[0].kill, how)
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


async def test_nobody_commits(own: Servers, house: House) -> None:
    """An idle store says it too, and that it is over."""
    await asyncio.to_thread(own.each[0].kill)
    async with asyncio.timeout(20):
        while "is away since" not in house.provider.trouble():
            await asyncio.sleep(0.05)
    await asyncio.wait_for(told(house, "is away since"), 5)
    await asyncio.to_thread(own.start)
    await asyncio.wait_for(told(house, ""), 20)
    assert not house.provider.trouble()


async def test_who_recovers_waits(own: Servers, house: House) -> None:
    """An owner that takes a partition over while the server is away gets all of it, later."""
    await house.append(enqueue(10, 3))
    house.provider._bodies._kept.clear()
    await asyncio.to_thread(own.each[0].kill)
    recovering: asyncio.Future[Any] = asyncio.ensure_future(house.alive())
    await asyncio.sleep(0.6)
    assert not recovering.done()
    await asyncio.to_thread(own.start)
    assert await asyncio.wait_for(recovering, 20) == {10: [0, 1, 2]}
