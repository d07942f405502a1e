"""What a publisher tells when partitions have gone to another term of office."""

from __future__ import annotations

from unittest.mock import Mock

from services.common.clients.partition_table import PartitionTable
from services.common.clients.publisher import Publisher
from services.common.uid import UidSource
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


async def test_a_process_that_has_a_partition_again(queue: ScriptedQueue) -> None:
    """A new lease of the same process counts as a new owner: consumers there attach again."""
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


async def test_owners_hear_for_which_term_messages_are(queue: ScriptedQueue) -> None:
    """With the first of them in each term and on each stream; what comes late is known by that."""
    table = PartitionTable()
    publisher = Publisher("test", UidSource(7), table, PARTITIONS.get)
    publisher.start()

    async def published() -> None:
        publish(publisher, messages_of(b"x"), ticket := RecordingTicket())
        await answered(ticket)

    for epoch in (3, 3, 5):
        assign(table, epoch, p0=queue)
        await published()
    queue.break_streams()
    await published()
    said = [[(term.partition, term.epoch) for term in batch.terms] for batch in queue.batches]
    assert said == [[(0, 3)], [], [(0, 5)], [(0, 5)]]
    await publisher.stop()
