"""A house with a queue process in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.queue_house import House


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """Store (in memory), router and one queue process."""
    built = House(tmp_path)
    await built.start()
    yield built
    await built.stop()
