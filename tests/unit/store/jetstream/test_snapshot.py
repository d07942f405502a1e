"""Snapshots and room in the stream: a start reads little, and what is dead goes, while commits go on."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from services.common.errors import InternalError
from services.store.provider import Changes, EntryRow, RecordRow
from services.store.providers import jetstream_snapshot
from services.store.providers.jetstream import JetStreamProvider
from services.store.providers.jetstream_link import JetStreamLink
from services.store.providers.jetstream_space import Segment
from services.store.providers.standing import Away
from tests.support.kept import everything, write_everything
from tests.support.read_back import batches_of
from tests.support.store_house import House
from tests.support.written_groups import alive, dead, group
from tests.support.written_stream import messages, reopened, tear

pytestmark = pytest.mark.usefixtures("no_care")

BODY = 20_000


async def subjects(url: str) -> dict[str, int]:
    """Of the stream: how many messages of each there are."""
    found: dict[str, int] = {}
    for message, _ in await messages(url):
        name = message.subject.partition(f"{url.rpartition('/')[2]}.")[2]
        found[name] = found.get(name, 0) + 1
    return found


async def test_everything_is_in_it(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind of thing is read back from a snapshot, with its age; the log before it is not needed."""
    # On a slow machine it would move contents behind the snapshot.
    monkeypatch.setattr("services.store.housekeeping._PERIOD_SECONDS", 3600.0)
    house = House("jetstream", tmp_path, lambda folder: JetStreamProvider(folder, url), lasting=True)
    await house.start()
    await write_everything(house)
    index = house.provider._index
    before, aged, floors = await everything(house.provider), index.aged(), await house.provider.floors(1)
    assert all(before.values())
    await house.provider._snapshots.take()
    await house.stop()
    again = await reopened(url)
    assert again._writer.loaded.groups == 0
    assert await everything(again) == before
    assert (again._index.aged(), await again.floors(1)) == (aged, floors)
    assert again._index.counters() == index.counters()
    await again.close()


async def test_commits_go_on_beside_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written between its pieces is not in it, and behind it in the log: a start has both."""
    monkeypatch.setattr(jetstream_snapshot, "_PIECE_BYTES", 1)
    monkeypatch.setattr("services.store.snapshot._PIECE_BYTES", 100)
    provider = await reopened(url)
    for number in range(1, 60):
        await provider.commit(group(number))
    taking = asyncio.ensure_future(provider._snapshots.take())
    number = 60
    while not taking.done():
        await provider.commit(group(number))
        await provider.commit(dead(number - 50))
        number += 1
    await taking
    assert number > 70
    expected = await alive(provider)
    assert list(expected) == [*range(1, 10), *range(number - 50, number)]
    await provider.close()
    again = await reopened(url)
    assert await alive(again) == expected
    assert 0 < again._writer.loaded.groups <= 2 * (number - 60)
    await again.close()


async def test_the_log_stays_short(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself, while it is written to: what the stream has is never much more than what lives."""
    monkeypatch.setattr(jetstream_snapshot, "_LOG_BYTES", 20 * BODY)
    monkeypatch.setattr("services.store.providers.jetstream._LOOK_SECONDS", 0.01)
    provider = await reopened(url)
    for number in range(1, 200):
        await provider.commit(group(number, BODY))
        await provider.commit(dead(max(number - 5, 0)))
        await asyncio.sleep(0.002)
    async with asyncio.timeout(20):
        while not _is_short(found := await subjects(url)):
            await asyncio.sleep(0.05)
    assert found["mark"] == found["writer"] == 1
    expected = {number: group(number, BODY).contents[number] for number in range(195, 200)}
    assert await alive(provider) == expected
    await provider.close()
    again = await reopened(url)
    assert await alive(again) == expected
    await again.close()


def _is_short(found: dict[str, int]) -> bool:
    """A log of less than half of what was written, behind one snapshot."""
    log = sum(count for name, count in found.items() if name.startswith("log."))
    return log < 100 and sum(name.startswith("snapshot.") for name in found) == 1


async def test_what_lives_long_is_moved(url: str) -> None:
    """A segment of which little lives is emptied: that is written again, blanked or not, and the rest goes."""
    provider = await reopened(url)
    for number in range(1, 101):
        await provider.commit(group(number, BODY))
    await provider.commit(Changes(blanked={50: b"blanked"}))
    await provider._snapshots.take()
    for number in range(1, 101):
        if number % 10:
            await provider.commit(dead(number))
    assert (await subjects(url))["log.1"] > 100
    await provider._cleaning.step()
    found = await subjects(url)
    assert "log.1" not in found
    expected = {number: group(number, BODY).contents[number] for number in range(10, 101, 10)} | {50: b"blanked"}
    for _ in range(2):
        assert await alive(provider) == expected
        assert [row.id for row in await provider.live() if not row.whole] == [50]
        await provider.close()
        provider = await reopened(url)
    await provider.close()


async def test_what_changes_while_it_is_moved(provider: JetStreamProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """What dies or is written again between the reading and the moving stays dead, or as it was written."""
    for number in range(1, 11):
        await provider.commit(group(number, BODY))
    await provider._snapshots.take()
    await provider.commit(dead(*range(1, 8)))
    move = provider._cleaning._move

    async def late(moved: Any) -> None:
        await provider.commit(dead(8))
        await provider.commit(Changes(blanked={9: b"blanked"}))
        await move(moved)

    monkeypatch.setattr(provider._cleaning, "_move", late)
    await provider._cleaning.step()
    assert await alive(provider) == {9: b"blanked", 10: group(10, BODY).contents[10]}
    assert list(provider._index._contents) == [9, 10]
    assert [segment.number for segment in provider._index.space.segments] == [2]


async def test_a_reader_keeps_what_it_reads(url: str, provider: JetStreamProvider) -> None:
    """Dead messages stay in the stream while a copy from before is read; then they are deleted."""
    for number in range(1, 11):
        await provider.commit(group(number, BODY))
    async with aclosing(provider.snapshot()) as pieces:
        found = [await anext(pieces)]
        await provider.commit(dead(*range(1, 11)))
        await provider._snapshots.take()
        await provider._cleaning.step()
        assert "log.1" in await subjects(url)
        found += [changes async for changes in pieces]
    assert sorted(number for changes in found for number in changes.contents) == list(range(1, 11))
    await provider._cleaning.step()
    assert "log.1" not in await subjects(url)
    assert await alive(provider) == {}


async def test_a_recovery_goes_on_meanwhile(provider: JetStreamProvider) -> None:
    """Reading a partition while its contents move, or are deleted, gives the live ones, and no error."""
    for number in range(1, 201):
        await provider.commit(group(number, BODY))
    await provider._snapshots.take()
    provider._bodies._kept.clear()
    found = []
    async for batch in batches_of(provider, 1):
        found.append(batch)
        if len(found) == 10:
            await provider.commit(dead(*range(50, 190)))
            await provider._cleaning.step()
            provider._bodies._kept.clear()
    assert [batch.entry.id for batch in found][-11:] == list(range(190, 201))
    assert all(batch.columns == group(batch.entry.id, BODY).contents[batch.entry.id] for batch in found)


async def test_one_that_fails(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot that was not finished is not read, and goes when there is another; the log is still there."""
    monkeypatch.setattr(jetstream_snapshot, "_PIECE_BYTES", 1)
    monkeypatch.setattr("services.store.snapshot._PIECE_BYTES", 100)
    provider = await reopened(url)
    for number in range(1, 20):
        await provider.commit(group(number))
    put, calls = provider._writer.put, iter(range(5))

    async def failing(subject: str, body: bytes) -> int:
        if next(calls, None) is None:
            raise Away("is away")
        return await put(subject, body)

    monkeypatch.setattr(provider._writer, "put", failing)
    with pytest.raises(Away):
        await provider._snapshots.take()
    await provider.commit(group(20))
    await provider.close()
    assert (await subjects(url))["snapshot.1"] == 1 + 5  # the first one says only that it begins
    again = await reopened(url)
    assert list(await alive(again)) == list(range(1, 21))
    await again._snapshots.take()
    assert "snapshot.1" not in await subjects(url)
    await again.close()
    last = await reopened(url)
    assert list(await alive(last)) == list(range(1, 21))
    await last.close()


async def test_too_many_segments(url: str, provider: JetStreamProvider) -> None:
    """A mark that is no one message is not written: a start would read the last part of it."""
    await provider._tasks.stop()
    await provider.commit(group(1))
    segments = provider._index.space.segments
    segments += [Segment(number, 1 << 40, 1 << 30) for number in range(2, 10_000)]
    before = provider._writer.loaded.segment
    with pytest.raises(InternalError, match="the log has 9999 segments, too many for a mark"):
        await provider._snapshots.take()
    assert provider._writer.loaded.segment == before
    assert not provider._snapshots.due
    del segments[1:]
    await provider._snapshots.take()
    await provider.close()
    again = await reopened(url)
    assert list(await alive(again)) == [1]
    await again.close()


async def test_one_is_replaced_while_it_is_read(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start begins again if the former writer replaces the snapshot that is being read."""
    provider = await reopened(url)
    await provider.commit(group(1))
    await provider._snapshots.take()
    last, once = JetStreamLink.last, iter((None,))

    async def overtaken(link: JetStreamLink, subject: str) -> Any:
        found = await last(link, subject)
        if subject.endswith("mark") and next(once, 0) is None:
            await provider.commit(group(2))
            await provider._snapshots.take()
        return found

    monkeypatch.setattr("services.store.providers.jetstream_writer.Writer._wait_for_the_last", _at_once)
    monkeypatch.setattr(JetStreamLink, "last", overtaken)
    again = await reopened(url)
    assert list(await alive(again)) == [1, 2]
    await provider.close()
    await again.close()


async def _at_once(*_: object) -> None:
    """Does not wait."""


async def test_rows_larger_than_a_message(url: str) -> None:
    """A row, a group and a snapshot may be as large as they are."""
    provider = await reopened(url)
    entry = EntryRow(1, 1, 1, 1, bytes(range(256)) * 9000)
    record = RecordRow("queue", "q", b"." * 1_500_000, 1)
    await provider.commit(Changes(contents={1: b"x" * 5_000_000}, entries={1: entry}, records={("queue", "q"): record}))
    for _ in range(2):
        [batch] = [batch async for batch in batches_of(provider, 1)]
        assert batch.entry == entry
        assert batch.columns == b"x" * 5_000_000
        assert await provider.records() == [record]
        await provider._snapshots.take()
        await provider.close()
        provider = await reopened(url)
    await provider.close()


async def test_a_group_that_was_torn(url: str) -> None:
    """Parts of a group whose writer has died do not count, and disturb nothing, in the log and behind a snapshot."""
    provider = await reopened(url)
    await provider.commit(group(1))
    await provider.close()
    for number in range(2, 5):
        torn = (await messages(url, "log.>"))[-1][1]._replace(number=number, nth=0, total=3)
        await tear(url, torn)
        again = await reopened(url)
        await again.commit(group(number))
        assert list(await alive(again)) == list(range(1, number + 1))
        if number == 3:
            await again._snapshots.take()
        await again.close()
