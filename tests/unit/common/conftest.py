from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.common.test_publisher import ScriptedQueue


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[ScriptedQueue]:
    """A queue process that does as it is told: the owner of partition 0, once that is assigned."""
    queue = ScriptedQueue(tmp_path / "a.sock")
    await queue.start()
    yield queue
    queue.break_streams()
    await queue.stop()
