"""What a former owner may have delivered goes to the next one behind the word of what clients hold."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock

import pytest

from services.common.clients.partition_table import PartitionTable
from services.common.clients.publisher import Publisher
from services.common.clients.queue_link import QueueLink
from services.common.message.weight import FRAME_BYTES
from services.common.uid import UidSource
from services.rpc import queue_pb2 as pb
from tests.support.programs import until
from tests.unit.common.test_publisher import (
    PARTITIONS,
    RecordingTicket,
    ScriptedQueue,
    answered,
    assign,
    messages_of,
    publish,
)


class _Gateway(Mock):
    """Has consumers, and says when it is asked to what they hold."""

    told = False

    def has_told(self, partition: int) -> bool:
        return bool(self.told) and partition == 0

    def tell(self, link: QueueLink) -> None:
        link.attach(pb.AttachConsumer(consumer=1, queue_id=1, held=[1], again=True))
        link.told(0, 1, ())
        self.told = True


async def _sent_without_an_answer(
    queue: ScriptedQueue, table: PartitionTable, gateway: _Gateway, body: bytes
) -> tuple[Publisher, RecordingTicket]:
    publisher = Publisher("test", UidSource(7), table, PARTITIONS.get, gateway)
    publisher.start()
    assign(table, p0=queue)
    await until(lambda: publisher.link_of(1))
    queue.answering = False
    publish(publisher, messages_of(body), ticket := RecordingTicket())
    await until(lambda: queue.batches)
    queue.break_streams()
    await until(lambda: publisher.link_of(1) is None)
    queue.answering = True
    await until(lambda: publisher.link_of(1))
    return publisher, ticket


async def test_sent_again_when_that_is_told(queue: ScriptedQueue, table: PartitionTable) -> None:
    """And nothing that comes behind it overtakes it meanwhile."""
    publisher, ticket = await _sent_without_an_answer(queue, table, gateway := _Gateway(), b"first")
    publish(publisher, messages_of(b"second"), behind := RecordingTicket())
    await asyncio.sleep(0.1)
    assert len(queue.batches) == 1
    gateway.tell(link := publisher.link_of(1))
    assert link is not None
    publisher.unpark_soon()
    assert [await answered(ticket), await answered(behind)] == [[], []]
    bodies = [body for batch in queue.batches[1:] for body in batch.bodies]
    assert bodies == [b"first", b"second"]
    await publisher.stop()


@pytest.mark.parametrize("size", [5, FRAME_BYTES + 1])
async def test_behind_that_however_large(queue: ScriptedQueue, table: PartitionTable, size: int) -> None:
    """Large batches go in frames of their own, before what else was asked for: not before that."""
    publisher, ticket = await _sent_without_an_answer(queue, table, gateway := _Gateway(), bytes(size))
    link = publisher.link_of(1)
    assert link is not None
    queue.said.clear()
    gateway.tell(link)
    publisher._unpark()
    await answered(ticket)
    assert queue.said.index("attaches") < queue.said.index("publishes")
    await publisher.stop()


async def test_new_messages_wait_for_nothing(queue: ScriptedQueue, table: PartitionTable) -> None:
    """Nobody has been given them."""
    publisher = Publisher("test", UidSource(7), table, PARTITIONS.get, _Gateway())
    publisher.start()
    publish(publisher, messages_of(b"early"), ticket := RecordingTicket())
    assign(table, p0=queue)
    assert await answered(ticket) == []
    await publisher.stop()
