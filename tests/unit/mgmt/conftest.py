from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.common.clients.mgmt import MgmtClient
from services.common.config import Settings
from services.mgmt.service import Service
from tests.support.fake_store import FakeStore
from tests.support.rest import Get, asking


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path, http_host="127.0.0.1", http_port=0, partitions=4)


@pytest.fixture
async def store(settings: Settings) -> AsyncIterator[FakeStore]:
    fake = FakeStore()
    await fake.start(settings.address_of("store"))
    yield fake
    await fake.stop()


@pytest.fixture
async def mgmt(settings: Settings, store: FakeStore) -> AsyncIterator[Service]:
    service = Service(settings)
    await service.start()
    yield service
    await service.stop()


@pytest.fixture
async def client(settings: Settings, mgmt: Service) -> AsyncIterator[MgmtClient]:
    async with MgmtClient(settings.address_of("mgmt")) as connected:
        yield connected


@pytest.fixture
def get(mgmt: Service) -> Get:
    """Asks over HTTP."""
    return asking(mgmt.http_port)
