from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.common.clients.store import StoreClient
from services.common.config import Settings
from services.rpc.store_pb2 import Record
from services.store.provider import Changes
from services.store.providers.memory import MemoryProvider
from services.store.service import Service
from tests.support.collected import Counts, collect


class Refuses(MemoryProvider):
    """Does not write for as long as it is told."""

    refuses = False

    async def commit(self, changes: Changes) -> None:
        if self.refuses:
            raise OSError("no space left")
        await super().commit(changes)


@pytest.fixture
async def provider(settings: Settings) -> AsyncIterator[Refuses]:
    """Of a store that serves."""
    made = Refuses(settings.data)
    service = Service(settings, made)
    await service.start()
    yield made
    await service.stop()


async def told(settings: Settings) -> Counts:
    return (await collect(settings.address_of("store")))[1]


async def test_commits(provider: Refuses, settings: Settings, client: StoreClient) -> None:
    """Each group is counted once with its size, however often it was tried; so is each time that it failed."""
    before = await told(settings)
    provider.refuses = True
    user = Record(kind="user", key="anna", value=b"{}")
    writing = asyncio.ensure_future(client.put_records([user]))
    async with asyncio.timeout(30):
        while (failures := (await told(settings)).get(("hopline_store_commit_failures_total",), 0)) < 2:
            await asyncio.sleep(0.05)
    assert not writing.done()
    provider.refuses = False
    await writing
    after = await told(settings)
    assert failures >= 2
    for name in ("hopline_store_commit_duration_seconds", "hopline_store_commit_size"):
        assert after[name,] - before.get((name,), 0) == 1
    assert after["hopline_configuration_changes_total",] == 1


async def test_room(tmp_path: Path) -> None:
    """What is stored in a file says how much room its disk has; what is in memory says nothing."""
    for provider, says in (("sqlite", True), ("memory", False)):
        settings = Settings(data=tmp_path / provider, store_provider=provider)
        service: Any = Service(settings)
        await service.start()
        found = await told(settings)
        await service.stop()
        assert (("hopline_store_disk_free_bytes",) in found) is says
        assert found.get(("hopline_store_disk_free_bytes",), 0) <= found.get(("hopline_store_disk_limit_bytes",), 0)
