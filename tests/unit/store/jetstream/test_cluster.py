"""Three servers: one of them may die at any time, and two may be away for a while; nothing confirmed is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from services.common.errors import InternalError
from services.store.providers import jetstream_snapshot
from services.store.providers.jetstream import JetStreamProvider
from tests.support.jetstream import Server, Servers, three
from tests.support.publisher import AT_ONCE, Publisher
from tests.support.store_house import House
from tests.support.unwritable import told
from tests.support.written_stream import reopened

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Servers]:
    with three() as running:
        yield running


@pytest.fixture
async def house(cluster: Servers, tmp_path: Path) -> AsyncIterator[House]:
    await asyncio.to_thread(cluster.start)
    url = cluster.url()
    house = House("jetstream", tmp_path, lambda folder: JetStreamProvider(folder, url), lasting=True)
    await house.start()
    yield house
    await house.stop()


async def leader(house: House, cluster: Servers) -> Server:
    """Of the stream."""
    link = house.provider._writer.link
    info = await link._jetstream.stream_info(link._stream)
    return cluster.each[int(info.cluster.leader.removeprefix("n"))]


async def test_three_replicas(house: House) -> None:
    """In a cluster a stream has three, without being told to."""
    link = house.provider._writer.link
    info = await link._jetstream.stream_info(link._stream)
    assert info.config.num_replicas == 3


async def test_one_replica(cluster: Servers, capsys: pytest.CaptureFixture[str]) -> None:
    """A stream that was made with one, for a server alone, is warned of; not where that is said."""
    await asyncio.to_thread(cluster.start)
    url = cluster.url()
    for options, warned in (("?replicas=1", False), ("", True), ("?replicas=3", False)):
        provider = await reopened(f"{url}{options}")
        await provider.close()
        assert ("the stream has one copy" in capsys.readouterr().out) == warned


async def test_any_one_is_killed(cluster: Servers, house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever dies, the stream's leader too, the store goes on with the others; snapshots are made meanwhile."""
    monkeypatch.setattr(jetstream_snapshot, "_GROUPS", 50)
    publisher = Publisher(house)
    await publisher.more(50)
    for victim in (*cluster.each, await leader(house, cluster)):
        await asyncio.to_thread(victim.kill)
        await publisher.more(60)
        await asyncio.to_thread(cluster.start)
    await publisher.stop()
    assert await house.alive() == publisher.expected()
    await house.restart()
    assert await house.alive() == publisher.expected()
    assert house.provider._writer.loaded.mark.snapshot


async def test_two_are_away(cluster: Servers, house: House) -> None:
    """Without most of them nothing is confirmed, and it is said why; when one is back all goes on."""
    publisher = Publisher(house)
    await publisher.more(50)
    spare = await leader(house, cluster)
    others = [server for server in cluster.each if server is not spare]
    for server in others:
        await asyncio.to_thread(server.kill)
    assert "since 20" in await told(house, "since 20")
    confirmed = publisher.confirmed()
    await asyncio.sleep(3)
    # What two had a copy of, and whose answer was lost, is found by asking: all frames under way, if they were a group.
    assert publisher.confirmed() <= confirmed + AT_ONCE
    others[0].start()
    await publisher.more(50)
    assert not await told(house, "")
    await publisher.stop()
    assert await house.alive() == publisher.expected()
    await asyncio.to_thread(cluster.start)
    await house.restart()
    assert await house.alive() == publisher.expected()


async def test_one_stands_still(cluster: Servers, house: House) -> None:
    """One that is there and says nothing, as the stream's leader, is done without."""
    publisher = Publisher(house)
    await publisher.more(20)
    victim = await leader(house, cluster)
    victim.pause()
    try:
        await publisher.more(20)
    finally:
        victim.resume()
    await publisher.more(20)
    await publisher.stop()
    assert await house.alive() == publisher.expected()


async def test_a_start_without_most_of_them(cluster: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said that there are too few, where waiting for them does not help."""
    monkeypatch.setattr("services.store.providers.jetstream_link._ANSWER_SECONDS", 1.0)
    monkeypatch.setattr("services.store.providers.jetstream_writer._STARTING_SECONDS", 3.0)
    for server in cluster.each[:2]:
        await asyncio.to_thread(server.kill)
    try:
        with pytest.raises(InternalError, match=r"cannot use nats://.*do most of its servers run\?"):
            await reopened(cluster.url())
    finally:
        await asyncio.to_thread(cluster.start)
