"""Whom a publisher tells that partitions have gone to another term of office."""

from __future__ import annotations

from unittest.mock import Mock

from services.common.clients.partition_table import PartitionTable
from services.common.clients.publisher import Publisher
from services.common.uid import UidSource
from tests.support.programs import until
from tests.unit.common.test_publisher import PARTITIONS, ScriptedQueue, assign


async def test_a_process_that_has_a_partition_again(queue: ScriptedQueue) -> None:
    """Another term of office of the same process is as another owner's: whoever consumes there asks again."""
    listener, table = Mock(), PartitionTable()
    publisher = Publisher("test", UidSource(7), table, PARTITIONS.get, listener)
    publisher.start()
    assign(table, p0=queue)
    await until(lambda: publisher.link_of(1))
    link = publisher.link_of(1)
    assign(table, p0=queue)
    assert not listener.moved.mock_calls
    assign(table, p0=queue, epoch=3)
    assert [each.args for each in listener.moved.mock_calls] == [(link, {0})]
    await publisher.stop()
