from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.support.elsewhere import Place, running


@pytest.fixture(scope="module", params=["postgres", "jetstream"])
def own(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A server for one test, which stops it."""
    with running(request.param) as place:
        yield place


@pytest.fixture
def place(own: Place) -> Place:
    """It runs again, after anything that was done to it."""
    own.start()
    return own


@pytest.fixture
def url(place: Place) -> str:
    """Of an empty store."""
    return place.url()


@pytest.fixture
async def provider(place: Place, url: str) -> AsyncIterator[Any]:
    provider = place.provider(url)
    await provider.open()
    yield provider
    await provider.close()
