"""Of two processes one writes: the stream itself refuses the other."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from services.common.errors import InternalError
from services.store.provider import Changes
from services.store.providers.jetstream import JetStreamProvider
from services.store.providers.jetstream_link import Behind
from tests.support.written_groups import alive, group, messages, reopened


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who starts hears of nobody: they cannot reach each other, or ask at once."""

    async def nobody(*_: object) -> str:
        return ""

    monkeypatch.setattr("services.store.providers.jetstream_link.Link.writer", nobody)


async def silence(provider: JetStreamProvider) -> None:
    """It does nothing of its own accord, and tells nobody that it is there: a process that is stopped, or cut off."""
    await provider._tasks.stop()
    await provider._writer._tasks.stop()
    await provider._writer._drop()


async def test_while_one_lives(url: str, provider: JetStreamProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one is refused with who the first one is, which goes on, also after it has lost its connection."""
    monkeypatch.setattr("services.store.providers.jetstream_writer._PREDECESSOR_SECONDS", 0.3)
    for number in (5, 6):
        with pytest.raises(InternalError, match=rf"another store process \(process {os.getpid()} on .*\) writes to "):
            await JetStreamProvider(Path(), url).open()
        await provider.commit(Changes(origin=number))
        assert await provider.last_origin() == number
        await provider._writer._drop()
        await provider.commit(Changes(origin=number))


async def test_the_next_one_waits_for_the_end_of_the_last(url: str, provider: JetStreamProvider) -> None:
    """A process that is restarted while its predecessor ends starts when that is gone."""
    following = JetStreamProvider(Path(), url)
    opening = asyncio.ensure_future(following.open())
    await asyncio.sleep(0.3)
    assert not opening.done()
    await provider.close()
    await asyncio.wait_for(opening, 5)
    await following.commit(Changes(origin=6))
    await following.close()


async def test_a_stale_process(url: str, provider: JetStreamProvider) -> None:
    """Who was given up and comes back writes nothing, says who writes, and ends."""
    ended: list[BaseException] = []
    provider.watch(ended.append)
    await provider.commit(group(1))
    await silence(provider)
    following = await reopened(url)
    await following.commit(group(2))
    written = await messages(url)
    for _ in range(2):
        with pytest.raises(InternalError, match=r"another store process \(.*\) has begun to write to .*: stop it, or"):
            await provider.commit(group(3))
    assert [str(end) for end in ended] == [provider.trouble()]
    assert await messages(url) == written
    assert list(await alive(following)) == [1, 2]
    await following.close()


async def test_with_its_connection(url: str, provider: JetStreamProvider, deaf: None) -> None:
    """It is the stream that refuses what was sent by one who does not know what is there."""
    link = provider._writer.link
    assert link
    following = await reopened(url)
    with pytest.raises(Behind):
        await link.append(f"{link.prefix}.log.1", provider._writer.loaded.last, [b"late"])
    with pytest.raises(InternalError, match="has begun to write"):
        await provider.commit(group(1))
    await following.close()


async def test_an_idle_process_finds_out(
    url: str, provider: JetStreamProvider, deaf: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a commit, too."""
    monkeypatch.setattr("services.store.providers.jetstream_writer._PING_SECONDS", 0.0)
    ended = asyncio.Event()
    provider.watch(lambda _: ended.set())
    following = await reopened(url)
    await asyncio.wait_for(ended.wait(), 10)
    await following.close()


async def test_both_write(url: str, provider: JetStreamProvider, deaf: None) -> None:
    """What one writes while another starts is read by that one, or refused: nothing is lost, nothing there twice."""
    confirmed: list[int] = []

    async def write() -> None:
        for number in range(1, 10_000):
            await provider.commit(group(number))
            confirmed.append(number)

    writing = asyncio.ensure_future(write())
    while len(confirmed) < 50:
        await asyncio.sleep(0)
    following = await reopened(url)
    with pytest.raises(InternalError, match="has begun to write"):
        await asyncio.wait_for(writing, 10)
    assert list(await alive(following)) == confirmed
    await following.close()
