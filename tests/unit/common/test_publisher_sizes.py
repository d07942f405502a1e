"""What a publisher sends in one frame, and holds back, goes by all that messages carry."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from services.common.clients.change import Change
from services.common.clients.partition_table import PartitionTable
from services.common.clients.pressure import Congestion
from services.common.clients.publisher import Publisher
from services.common.message.weight import FRAME_BYTES
from services.common.uid import UidSource
from services.rpc import queue_pb2 as pb
from tests.support.programs import until
from tests.unit.common.test_publisher import RecordingTicket, ScriptedQueue, answered, assign, messages_of, publish


@pytest.fixture
async def publisher(queue: ScriptedQueue) -> AsyncIterator[Publisher]:
    """Connected to the queue process; queue 1 is of partition 0."""
    table = PartitionTable()
    publisher = Publisher("test", UidSource(7), table, {1: 0}.get)
    publisher.start()
    assign(table, p0=queue)
    ticket = RecordingTicket()
    publish(publisher, messages_of(b"connected"), ticket)
    await answered(ticket)
    yield publisher
    await publisher.stop()


async def test_properties_weigh(queue: ScriptedQueue, publisher: Publisher) -> None:
    """Messages that are mostly properties go out in frames of bearable size, and hold their publisher back."""
    pressures, tickets = [], []
    for number in range(100):
        large = replace(messages_of(b"x"), properties=[b"%03d" % number + bytes(120_000)])
        tickets.append(RecordingTicket())
        pressures.append(publish(publisher, large, tickets[-1]))
    for ticket in tickets:
        await answered(ticket)
    assert max(batch.ByteSize() for batch in queue.batches) <= FRAME_BYTES
    assert pressures[-1] is not None
    assert pressures[-1].state is Congestion.FULL


async def test_many_settlements_are_many_frames(queue: ScriptedQueue, publisher: Publisher) -> None:
    """A million settlements are no single piece of work for a queue process; what is asked after them stays behind."""
    link = publisher.link_of(1)
    assert link is not None
    publish(publisher, messages_of(b"before"), None)
    link.settle(1, pb.ACCEPT, range(1, 1_000_001))
    publish(publisher, messages_of(b"behind"), None)
    await until(lambda: len(queue.batches) == 3)
    assert sum(len(settle.uids) for settle in queue.settles) == 1_000_000
    assert max(len(settle.uids) for settle in queue.settles) <= 50_000
    assert [bytes(batch.bodies[0]) for batch in queue.batches] == [b"connected", b"before", b"behind"]


async def test_what_is_said_besides_weighs(queue: ScriptedQueue, publisher: Publisher) -> None:
    """Settlements with annotations go out in frames of bearable size; those that say the same say it once."""
    link = publisher.link_of(1)
    assert link is not None
    for number in range(200):
        link.settle(1, pb.RELEASE, [2 * number, 2 * number + 1], change=Change(b"%04d" % (number // 2) + bytes(16_000)))
    await until(lambda: sum(len(settle.uids) for settle in queue.settles) == 400)
    assert len(queue.settles) < 200
    assert {len(settle.annotations) for settle in queue.settles} == {16_004}
    assert queue.largest < 1 << 20
