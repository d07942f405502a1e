"""The database goes away under a store that runs, and comes back: commits wait, and nothing else does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from services.store.providers.postgres import PostgresProvider
from tests.support.postgres import Cluster, cluster
from tests.support.publisher import Publisher
from tests.support.store_house import House


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """A server for one test, which stops it."""
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
