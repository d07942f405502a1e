from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from services.store.providers.jetstream import JetStreamProvider
from tests.support.jetstream import Servers, alone


@pytest.fixture(scope="session")
def nats() -> Iterator[Servers]:
    with alone() as running:
        yield running


@pytest.fixture
def no_care(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider makes snapshots and room only where a test says so: on a slow machine it would while a test does."""
    monkeypatch.setattr("services.store.providers.jetstream._LOOK_SECONDS", 3600.0)


@pytest.fixture
def url(nats: Servers) -> str:
    """Of a stream that does not exist yet."""
    return nats.url()


@pytest.fixture
async def provider(url: str) -> AsyncIterator[JetStreamProvider]:
    provider = JetStreamProvider(Path(), url)
    await provider.open()
    yield provider
    await provider.close()
