"""A stream that may have so many bytes: publishers wait before it is full, and what makes room has some left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.common.disk import Room
from services.common.errors import InternalError
from services.store.providers import jetstream_snapshot
from services.store.providers.jetstream import JetStreamProvider
from services.store.providers.jetstream_link import JetStreamLink
from services.store.providers.jetstream_space import Left
from services.store.providers.jetstream_url import Url, parse
from services.store.providers.standing import Away
from tests.support.store_house import House, content, dequeue, enqueue
from tests.support.unwritable import told
from tests.support.written_groups import alive, dead, group
from tests.support.written_stream import reopened

LIMIT = 2_000_000


async def limit(url: Url, size: int = 0) -> None:
    """As `nats stream edit --max-bytes` does; without a size not a byte more than there is."""
    link = await JetStreamLink.connect(url)
    found = await link._jetstream.stream_info(link._stream)
    await link._jetstream.update_stream(found.config.evolve(max_bytes=size or found.state.bytes))
    await link.close()


async def fill(provider: JetStreamProvider) -> int:
    """By groups that are not held back; the number of the last."""
    for number in range(1, 1000):
        try:
            await provider.commit(group(number, 40_000))
        except Away:
            return number - 1
    pytest.fail("it takes everything")


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks often."""
    monkeypatch.setattr("services.store.providers.jetstream._LOOK_SECONDS", 0.01)
    for name, seconds in (("_LOOK_SECONDS", 0.01), ("_PING_SECONDS", 0.0), ("_BUSY_SECONDS", 0.1)):
        monkeypatch.setattr(f"services.store.providers.jetstream_writer.{name}", seconds)


@pytest.mark.timeout(30)
async def test_it_is_said(url: str, provider: JetStreamProvider) -> None:
    """That it is full, and what to do: not that there is no answer. A start says it too, and does not wait."""
    await limit(parse(url), LIMIT)
    count = await fill(provider)
    with pytest.raises(Away, match=r"it is full \(maximum bytes exceeded\): give it more room") as refused:
        await provider.commit(group(count + 1, 40_000))
    assert "max_bytes" in refused.value.do
    await provider.close()
    await limit(parse(url))
    with pytest.raises(InternalError, match=r"cannot use nats://.*: it is full \(maximum bytes exceeded\)"):
        await reopened(url)
    await limit(parse(url), 2 * LIMIT)
    again = await reopened(url)
    assert list(await alive(again)) == list(range(1, count + 1))
    await again.close()


async def test_how_much_is_left(url: str, provider: JetStreamProvider) -> None:
    """It is known without asking, and never more than there is."""
    assert provider.room() is None
    await limit(parse(url), LIMIT)
    await provider._writer._ping()
    before = provider.room()
    assert before is not None
    for number in range(1, 10):
        await provider.commit(group(number, 40_000))
    found = provider.room()
    await provider._writer._ping()
    exact = provider.room()
    assert exact is not None
    assert found is not None
    assert exact.free - 10_000 < found.free <= exact.free < before.free - 9 * 40_000
    assert found.total == LIMIT * 7 // 8


def test_what_may_be_written_to_make_room() -> None:
    """More than messages may have, and not all; without a limit all."""
    left = Left()
    assert left.spares(1 << 40)
    assert left.for_messages is None
    left.told(2200, 3200)
    assert left.for_messages == Room(600, 2800)
    assert left.spares(899)
    assert not left.spares(900)
    left.told(4000, 3200)
    assert left.for_messages == Room(0, 2800)


async def test_no_room_for_a_snapshot(url: str, provider: JetStreamProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up and leaves nothing behind; later there is one, however little the log has grown."""
    monkeypatch.setattr(jetstream_snapshot, "_AGAIN_SECONDS", 0.0)
    await provider._tasks.stop()
    for number in range(1, 10):
        await provider.commit(group(number))
    spares = provider._writer.left.spares
    monkeypatch.setattr(provider._writer.left, "spares", lambda _: False)
    assert not provider._snapshots.due
    with pytest.raises(InternalError, match="no room for a snapshot"):
        await provider._snapshots.take()
    link = provider._writer.link
    assert link
    assert not (await link.held(f"{link.prefix}.snapshot.>")).subjects
    assert provider._snapshots.due
    monkeypatch.setattr(provider._writer.left, "spares", spares)
    await provider._snapshots.take()
    assert not provider._snapshots.due
    await provider.commit(dead(1))
    await provider.close()
    again = await reopened(url)
    assert list(await alive(again)) == list(range(2, 10))
    await again.close()


@pytest.fixture
async def house(url: str, hasty: None, tmp_path: Path) -> AsyncIterator[House]:
    house = House("jetstream", tmp_path, lambda folder: JetStreamProvider(folder, url), lasting=True)
    await house.start()
    await limit(parse(url), LIMIT)
    yield house
    await house.stop()


async def consume(house: House, numbers: range) -> None:
    for number in numbers:
        await asyncio.wait_for(house.append(dequeue(number, 0), writer=2), 20)


@pytest.mark.timeout(120)
async def test_publishers_wait(house: House) -> None:
    """What they send waits, acknowledgements go on, and make room: for as much again, and again."""
    for first in (1, 101, 201):
        under_way = []
        for number in range(first, first + 100):
            frame = enqueue(number, 1)
            frame.contents[0].columns = content(number, 1, size=30_000).columns
            under_way.append(house.append(frame))
            await asyncio.sleep(0.005)
        assert "low on disk" in await told(house, "low on disk")
        assert not under_way[-1].done()
        # How many fit at once depends on which dead ones share a segment of the log with one that lives.
        for number, done in enumerate(under_way, first):
            await asyncio.wait_for(done, 60)
            await consume(house, range(number, number + 1))
