from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.common.clients.partition_table import PartitionTable
from services.common.clients.publisher import Publisher
from services.common.uid import UidSource
from tests.unit.common.test_publisher import PARTITIONS, ScriptedQueue


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[ScriptedQueue]:
    """A queue process that does as it is told: the owner of partition 0, once that is assigned."""
    queue = ScriptedQueue(tmp_path / "a.sock")
    await queue.start()
    yield queue
    queue.break_streams()
    await queue.stop()


@pytest.fixture
async def queues(tmp_path: Path) -> AsyncIterator[list[ScriptedQueue]]:
    both = [ScriptedQueue(tmp_path / "a.sock"), ScriptedQueue(tmp_path / "b.sock")]
    for queue in both:
        await queue.start()
    yield both
    for queue in both:
        queue.break_streams()
        await queue.stop()


@pytest.fixture
async def table() -> PartitionTable:
    return PartitionTable()


@pytest.fixture
async def publisher(table: PartitionTable) -> AsyncIterator[Publisher]:
    publisher = Publisher("test", UidSource(7), table, PARTITIONS.get)
    publisher.start()
    yield publisher
    await publisher.stop()
