"""Whether a writer lives, as the server's list of its sessions tells those who stand by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from services.store.providers import postgres_signs, standstill
from services.store.providers.postgres import PostgresProvider
from tests.support.postgres import Cluster
from tests.support.tcp_proxy import Proxy
from tests.support.written_groups import alive, group

SILENT = 3.0


class Slow(Proxy):
    """A socket that takes little at a time."""

    async def _requests(
        self, reader: asyncio.StreamReader, onwards: asyncio.StreamWriter, client: asyncio.StreamWriter
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                onwards.write(data)
                await onwards.drain()
                await asyncio.sleep(len(data) / (2 << 20))
        onwards.close()


@pytest.fixture
async def slow(postgres: Cluster) -> AsyncIterator[Slow]:
    proxy = Slow(postgres.port)
    await proxy.start()
    yield proxy
    await proxy.stop()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that stands by does not wait long."""
    monkeypatch.setattr(standstill, "SILENT_SECONDS", SILENT)
    monkeypatch.setattr(postgres_signs, "_PAUSE_SECONDS", SILENT / 4)


@pytest.fixture
async def following(url: str) -> AsyncIterator[PostgresProvider]:
    """It stands by."""
    provider = PostgresProvider(Path(), url)
    yield provider
    await provider.close()


async def test_one_that_sends_much(postgres: Cluster, url: str, slow: Slow, following: PostgresProvider) -> None:
    """Over a slow way: for as long as the server reads that it shows a session that does nothing, and yet it lives."""
    provider = PostgresProvider(Path(), url.replace(f":{postgres.port}/", f":{slow.port}/"))
    await provider.open()
    await provider._writer._tasks.stop()
    writing = asyncio.ensure_future(provider.commit(group(1, 16 << 20)))
    began = asyncio.get_running_loop().time()
    while not writing.done():
        assert await following.occupied()
        await asyncio.sleep(0.05)
    assert asyncio.get_running_loop().time() - began > 2 * SILENT
    await writing
    assert list(await alive(provider)) == [1]
    await provider.close()


async def test_one_that_reads_nothing(provider: PostgresProvider, following: PostgresProvider) -> None:
    """A writer that stands still amid an answer keeps its session busy for ever, and is found dead all the same."""
    await provider._writer._tasks.stop()
    assert await following.occupied()
    connection = provider._writer._connection
    connection._transport.pause_reading()
    much = "SELECT repeat('x', 1000) FROM generate_series(1, 100000)"
    reading = asyncio.ensure_future(connection.fetch(much))
    async with asyncio.timeout(20):
        while await following.occupied():
            await asyncio.sleep(0.05)
    connection.terminate()
    await asyncio.gather(reading, return_exceptions=True)
