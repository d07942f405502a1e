from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.common import plugins
from tests.support.store_house import House


@pytest.fixture(params=plugins.names("store_providers"))
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[House]:
    house = House(request.param, tmp_path)
    await house.start()
    yield house
    await house.stop()
