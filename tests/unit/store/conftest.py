from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.common.clients.store import Journal, StoreClient
from services.common.config import Settings
from services.store.service import Service
from tests.support.store_house import House
from tests.support.store_process import StoreProcess


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House("sqlite", tmp_path)
    await house.start()
    yield house
    await house.stop()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path / "data", store_provider="memory")


@pytest.fixture
async def service(settings: Settings) -> AsyncIterator[Service]:
    service = Service(settings)
    await service.start()
    yield service
    await service.stop()


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[StoreClient]:
    client = StoreClient(settings.address_of("store"))
    yield client
    await client.close()


@pytest.fixture
async def journal(settings: Settings) -> AsyncIterator[Journal]:
    journal = Journal(settings.address_of("store"), "test")
    await journal.start()
    yield journal
    await journal.stop()


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[StoreProcess]:
    process = StoreProcess(tmp_path / "data")
    await process.start()
    yield process
    await process.stop()
