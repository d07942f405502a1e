"""A standby takes over from a primary that is gone, or that only thinks that it is the primary."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from services.store.providers.postgres import PostgresProvider
from tests.support.postgres import Cluster, Standby, cluster
from tests.support.publisher import Publisher
from tests.support.store_house import House


@pytest.fixture
def primary() -> Iterator[Cluster]:
    with cluster() as running:
        yield running


@pytest.fixture
def standby(primary: Cluster) -> Iterator[Standby]:
    with cluster(primary) as running:
        assert isinstance(running, Standby)
        yield running


@pytest.fixture
async def house(primary: Cluster, standby: Standby, tmp_path: Path) -> AsyncIterator[House]:
    """On either of the two, whichever takes writes."""
    both = primary.new_database().replace(f":{primary.port}", f":{primary.port},127.0.0.1:{standby.port}")
    house = House("postgres", tmp_path, lambda folder: PostgresProvider(folder, both), lasting=True)
    await house.start()
    yield house
    await house.stop()


def synchronous(primary: Cluster) -> None:
    """Commits wait for the standby from now on."""
    primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.sql("SELECT pg_reload_conf()")


async def test_a_synchronous_standby(primary: Cluster, standby: Standby, house: House) -> None:
    """The primary is killed under commits and the standby promoted: all that was confirmed is there, once."""
    await asyncio.to_thread(synchronous, primary)
    publisher = Publisher(house)
    await publisher.more(50)
    await asyncio.to_thread(primary.stop)
    await asyncio.to_thread(standby.promote)
    await publisher.more(50)
    await publisher.stop()
    assert await house.alive() == publisher.expected()
    assert house.failures == []


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "cut"])
async def test_while_a_synchronous_standby_is_away(
    primary: Cluster, standby: Standby, house: House, ended: bool
) -> None:
    """Nothing is confirmed that only the primary has, however it is asked for; then all of it, once."""
    await asyncio.to_thread(synchronous, primary)
    publisher = Publisher(house)
    await publisher.more(20)
    await asyncio.to_thread(standby.stop)
    await asyncio.sleep(0.3)
    confirmed = publisher.confirmed()
    if ended:  # by the server: it shows then what it has committed by itself
        primary.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hopline store'")
    else:
        house.provider._writer._connection.terminate()
    await asyncio.sleep(2)
    assert publisher.confirmed() == confirmed
    await asyncio.to_thread(standby.start)
    await publisher.more(20)
    await publisher.stop()
    assert await house.alive() == publisher.expected()


async def test_a_former_primary_that_answers(primary: Cluster, standby: Standby, house: House) -> None:
    """Sessions that it still has read nothing from it: what was committed to the new one is not there."""
    await asyncio.to_thread(synchronous, primary)
    publisher = Publisher(house)
    await publisher.more(20)
    await house.alive()
    await asyncio.to_thread(standby.promote)
    primary.sql("ALTER SYSTEM SET default_transaction_read_only = on")
    primary.sql("SELECT pg_reload_conf()")
    house.provider._writer._connection.terminate()
    await publisher.more(20)
    await publisher.stop()
    assert await house.alive() == publisher.expected()
    pieces = [sorted(changes.entries) async for changes in house.provider.snapshot() if changes]
    assert sorted(number for piece in pieces for number in piece) == sorted(publisher.expected())


async def test_a_standby_that_did_not_have_all_of_it(primary: Cluster, standby: Standby, house: House) -> None:
    """What was confirmed and is not there is said, and the process ends: it knows of more than there is."""
    publisher = Publisher(house)
    await publisher.more(20)
    await asyncio.to_thread(standby.stop, "fast")
    await publisher.more(50)
    await asyncio.to_thread(primary.stop)
    await asyncio.to_thread(standby.start)
    await asyncio.to_thread(standby.promote)
    async with asyncio.timeout(20):
        while not house.failures:
            await asyncio.sleep(0.05)
    assert "has lost what it had confirmed: its last group is" in str(house.failures[0])
    publisher.abandon()
