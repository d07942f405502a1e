from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.backups import back_up
from tests.support.kept import write_everything
from tests.support.store_house import House


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A store with everything in it."""
    house = House("sqlite", tmp_path / "store")
    house._folder.mkdir()
    await house.start()
    await write_everything(house)
    yield house
    await house.stop()


@pytest.fixture
async def file(house: House, tmp_path: Path) -> Path:
    """A backup of it."""
    return await back_up(house, tmp_path / "one.backup")
