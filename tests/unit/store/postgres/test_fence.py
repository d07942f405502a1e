"""One process writes: by the epoch in every commit, and politely by a lock."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from services.common.errors import InternalError
from services.store.provider import Changes
from services.store.providers.postgres import PostgresProvider
from services.store.providers.standing import Away


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
