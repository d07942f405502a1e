"""One process writes: by the epoch in every commit, and politely by a lock."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import asyncpg
import pytest

from services.common.errors import InternalError
from services.store.provider import Changes
from services.store.providers.postgres import PostgresProvider
from services.store.providers.postgres_writer import Away


def silence(provider: PostgresProvider) -> None:
    """Its sessions end, and it does nothing of its own accord: a process that is stopped, or cut off."""
    for task in list(provider._writer._tasks._tasks):
        task.cancel()
    provider._writer._connection.terminate()


async def test_while_one_lives(url: str, provider: PostgresProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one is refused with who the first one is, which goes on."""
    monkeypatch.setattr("services.store.providers.postgres_writer._PREDECESSOR_SECONDS", 0.3)
    with pytest.raises(InternalError, match=rf"another store process \(process {os.getpid()} on .*\) writes to "):
        await PostgresProvider(Path(), url).open()
    await provider.commit(Changes(origin=5))
    assert await provider.last_origin() == 5


async def test_while_one_comes_back(url: str, provider: PostgresProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has lost its connection and has another is as alive as before."""
    monkeypatch.setattr("services.store.providers.postgres_writer._PREDECESSOR_SECONDS", 0.3)
    provider._writer._connection.terminate()
    await provider.commit(Changes(origin=5))
    with pytest.raises(InternalError, match="another store process"):
        await PostgresProvider(Path(), url).open()


async def test_the_next_one_waits_for_the_end_of_the_last(url: str, provider: PostgresProvider) -> None:
    """A process that is restarted while its predecessor ends starts when that is gone."""
    following = PostgresProvider(Path(), url)
    opening = asyncio.ensure_future(following.open())
    await asyncio.sleep(0.3)
    assert not opening.done()
    await provider.close()
    await asyncio.wait_for(opening, 5)
    await following.commit(Changes(origin=6))
    await following.close()


async def test_a_stale_process(url: str, provider: PostgresProvider) -> None:
    """Who was given up and comes back writes nothing, says who writes, and ends."""
    ended: list[BaseException] = []
    provider.watch(ended.append)
    await provider.commit(Changes(origin=1))
    silence(provider)
    following = PostgresProvider(Path(), url)
    await following.open()
    await following.commit(Changes(origin=2))
    for _ in range(2):
        with pytest.raises(
            InternalError, match=r"another store process .* writes to .* since .* UTC: stop it, or this"
        ):
            await provider.commit(Changes(origin=1))
    assert [str(end) for end in ended] == [provider.trouble()]
    await following.commit(Changes(leases={}, origin=3))
    assert await following.last_origin() == 3
    await following.close()


async def test_a_stale_session(url: str, provider: PostgresProvider) -> None:
    """A session that is still there when another has become the writer is refused by the database itself."""
    connection = await asyncpg.connect(url)
    await connection.execute("UPDATE hopline.store SET epoch = epoch + 1, owner = 1")
    await connection.close()
    with pytest.raises(Away, match=r"refuses since .*: epoch \d+ is over"):
        await provider.commit(Changes(contents={1: b"x"}))
    with pytest.raises(InternalError, match="another store process"):
        await provider.commit(Changes(contents={1: b"x"}))
    assert await provider.sharing(1) is None


async def test_an_idle_process_finds_out(url: str, provider: PostgresProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a commit, too."""
    monkeypatch.setattr("services.store.providers.postgres_writer._PING_SECONDS", 0.0)
    ended = asyncio.Event()
    provider.watch(lambda _: ended.set())
    connection = await asyncpg.connect(url)
    await connection.execute("UPDATE hopline.store SET epoch = epoch + 1, owner = 1")
    await connection.close()
    await asyncio.wait_for(ended.wait(), 10)


async def test_what_tidies_is_fenced(url: str, provider: PostgresProvider) -> None:
    """A stale process forgets nothing of what the other one has written."""
    await provider.commit(Changes(at=1, outcomes={5: True}))
    connection = await asyncpg.connect(url)
    await connection.execute("UPDATE hopline.store SET epoch = epoch + 1, owner = 1")
    await connection.close()
    with pytest.raises(Away):
        await provider.tidy(100, 100)
    assert len(await provider.outcomes()) == 1
