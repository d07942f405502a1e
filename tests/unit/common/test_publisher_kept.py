"""Which large bodies a publisher keeps, of those that it sends to queue processes over real streams."""

from __future__ import annotations

import pytest

from services.common.clients.kept_bodies import WORTH
from services.common.clients.partition_table import PartitionTable
from services.common.clients.publisher import Publisher
from services.rpc import queue_pb2 as pb
from tests.support.programs import until
from tests.unit.common.test_publisher import RecordingTicket, ScriptedQueue, answered, assign, messages_of, publish

_LARGE = bytes(WORTH)


async def _consume(publisher: Publisher, process: ScriptedQueue, queue_id: int, *, names: bool = True) -> None:
    """Attaches consumer 1 of a queue; its process says that it names bodies, or nothing of it."""
    await until(lambda: process.streams and publisher.link_of(queue_id))
    link = publisher.link_of(queue_id)
    assert link
    link.attach(pb.AttachConsumer(consumer=1, queue_id=queue_id))
    process.say(pb.QueueFrame(names_kept=names, blocked=pb.Blocked(queue_ids=[9])))
    await until(lambda: link.full)


async def _kept(publisher: Publisher, process: ScriptedQueue, *bodies: bytes, queue_id: int = 1) -> bool:
    """Whether a batch of them says that they are kept."""
    publish(publisher, messages_of(*bodies, queue_ids=(queue_id,)), ticket := RecordingTicket())
    await answered(ticket)
    return process.batches[-1].kept


async def test_while_there_is_a_consumer(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """Of this publisher, and of that queue: no more when it has ended."""
    assign(table, p0=queues[0], p1=queues[0])
    await _consume(publisher, queues[0], 1)
    assert await _kept(publisher, queues[0], _LARGE)
    assert not await _kept(publisher, queues[0], _LARGE, queue_id=2)
    link = publisher.link_of(1)
    assert link
    link.detach(1)
    assert not await _kept(publisher, queues[0], _LARGE)


async def test_a_queue_process_of_a_former_release(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """It would neither name nor forget them."""
    assign(table, p0=queues[0])
    await _consume(publisher, queues[0], 1, names=False)
    assert not await _kept(publisher, queues[0], _LARGE)


@pytest.mark.parametrize("room", [2, 4])
async def test_all_queue_processes_share_the_room(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher, room: int
) -> None:
    """However many there are; what was kept for one is free when its stream has ended."""
    publisher._rooms.kept.most = room * WORTH
    assign(table, p0=queues[0], p1=queues[1])
    for number, process in enumerate(queues, 1):
        await _consume(publisher, process, number)
    assert await _kept(publisher, queues[0], _LARGE, _LARGE)
    assert await _kept(publisher, queues[1], _LARGE, _LARGE, queue_id=2) is (room == 4)
    queues[0].break_streams()
    queues[1].break_streams()
    await until(lambda: not publisher._rooms.kept.used)
