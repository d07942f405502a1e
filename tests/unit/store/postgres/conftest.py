from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from services.store.providers.postgres import PostgresProvider
from tests.support.postgres import Cluster, cluster


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    with cluster() as running:
        yield running


@pytest.fixture
def url(postgres: Cluster) -> str:
    """Of an empty database."""
    return postgres.new_database()


@pytest.fixture
async def provider(url: str) -> AsyncIterator[PostgresProvider]:
    provider = PostgresProvider(Path(), url)
    await provider.open()
    yield provider
    await provider.close()
