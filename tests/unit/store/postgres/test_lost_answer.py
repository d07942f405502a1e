"""A commit of which no answer came is asked for, and written if it is not there: once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
import structlog

from services.common.errors import InternalError
from services.store.providers.postgres import PostgresProvider
from services.store.providers.standing import Away
from tests.support.postgres import Cluster
from tests.support.tcp_proxy import Fault, Proxy
from tests.support.written_groups import alive, commit, dead, group


@pytest.fixture
async def proxy(postgres: Cluster) -> AsyncIterator[Proxy]:
    proxy = Proxy(postgres.port)
    await proxy.start()
    yield proxy
    await proxy.stop()


@pytest.fixture
async def cut(postgres: Cluster, proxy: Proxy, url: str) -> AsyncIterator[PostgresProvider]:
    """A provider that comes to its database by the proxy."""
    provider = PostgresProvider(Path(), url.replace(f":{postgres.port}/", f":{proxy.port}/"))
    await provider.open()
    await provider.commit(group(1))
    yield provider
    await provider.close()


async def transactions(url: str) -> int:
    """How many groups were written, by the database's own count of rows that were put into a table by them."""
    connection = await asyncpg.connect(url)
    try:
        # Every group puts its number into the one row of the table, and inserts a content.
        count: int = await connection.fetchval("SELECT written FROM hopline.store")
        assert await connection.fetchval("SELECT count(*) FROM hopline.content") == count
        return count
    finally:
        await connection.close()


@pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.name)
async def test_one_is_lost(cut: PostgresProvider, proxy: Proxy, url: str, fault: Fault) -> None:
    """Whether the request was lost, the answer, or both come late: the group is there, and was written once."""
    proxy.strike(fault)
    with structlog.testing.capture_logs() as logs:
        assert await commit(cut, group(2)) == 1
    fates = [line["last_group"] for line in logs if "last_group" in line]
    assert fates == ["there" if fault is Fault.LOSE_ANSWER else "not there"]
    await commit(cut, group(3))
    await proxy.let_go()
    await commit(cut, group(4))
    assert await transactions(url) == 4
    assert list(await alive(cut)) == [1, 2, 3, 4]
    assert await cut.writers() == {7: 4}


async def test_what_comes_late_is_shut_out(cut: PostgresProvider, proxy: Proxy, url: str) -> None:
    """A request that comes when its entries were acknowledged long ago does not bring them back."""
    proxy.strike(Fault.DELAY_REQUEST)
    await commit(cut, group(2))
    await commit(cut, dead(2))
    await proxy.let_go()
    await asyncio.sleep(0.2)
    assert list(await alive(cut)) == [1]


async def test_many_in_a_row(cut: PostgresProvider, proxy: Proxy, url: str) -> None:
    """Any answer may be lost at any time, also to the question for it: nothing is written twice."""
    for number in range(2, 32):
        proxy.strike(list(Fault)[number % 3])
        writing = asyncio.ensure_future(commit(cut, group(number)))
        if number % 2:
            await proxy.struck.wait()
            proxy.strike(list(Fault)[number // 3 % 3])
        await writing
        proxy.fault = None
    await proxy.let_go()
    assert await transactions(url) == 31
    assert list(await alive(cut)) == list(range(1, 32))


async def test_one_that_is_given_up(cut: PostgresProvider, proxy: Proxy, url: str) -> None:
    """A store that does not ask again for an unanswered group goes on with the next one."""
    proxy.strike(Fault.LOSE_ANSWER)
    with pytest.raises(Away):
        await cut.commit(group(2))
    await commit(cut, group(3))
    assert await transactions(url) == 3


async def test_no_answer_at_all(cut: PostgresProvider, proxy: Proxy, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that says nothing any more is given up after a while, and its group asked for.

    The database is away since it was asked, not since that was noticed.
    """
    monkeypatch.setattr("services.store.providers.postgres_writer._ANSWER_SECONDS", 0.3)
    monkeypatch.setattr("services.store.providers.postgres_writer.epoch_ms", lambda: 1000)
    connection = await asyncpg.connect(url)
    async with connection.transaction():
        await connection.execute("LOCK TABLE hopline.content IN EXCLUSIVE MODE")
        with pytest.raises(Away, match="is away since 1970-01-01 00:00:01 UTC: no answer for 0 seconds"):
            await cut.commit(changes := group(2))
    assert await commit(cut, changes) >= 0
    await connection.close()
    assert await transactions(url) == 2


async def test_commits_that_the_database_has_lost(cut: PostgresProvider, url: str) -> None:
    """Where a standby has taken over that did not have what was confirmed, the process ends: it knows of too much."""
    ended: list[BaseException] = []
    cut.watch(ended.append)
    await commit(cut, group(2))
    connection = await asyncpg.connect(url)
    await connection.execute("UPDATE hopline.store SET written = 1")
    await connection.close()
    cut._writer._connection.terminate()
    for _ in range(2):
        with pytest.raises(InternalError, match="has lost what it had confirmed: its last group is 1, and 2 was"):
            await cut.commit(group(3))
    assert len(ended) == 1
    assert "has lost" in cut.trouble()
