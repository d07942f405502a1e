"""A large message that owners die of is refused; nothing else ever is for that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from services.common.clients.partition_table import PartitionTable
from services.common.clients.publisher import Publisher
from services.common.message.weight import FRAME_BYTES
from services.common.uid import UidSource
from services.rpc import queue_pb2 as pb
from tests.support.programs import until
from tests.unit.common.test_publisher import RecordingTicket, ScriptedQueue, answered, assign, messages_of, publish

LETHAL = bytes(FRAME_BYTES + 1)


class Houses:
    """Owners that come one after the other; each is lost when the test says so."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.table = PartitionTable()
        self.all: list[ScriptedQueue] = []

    async def next(self, *, answering: bool = False) -> ScriptedQueue:
        queue = ScriptedQueue(self._folder / f"{len(self.all)}.sock")
        queue.answering = answering
        self.all.append(queue)
        await queue.start()
        assign(self.table, p0=queue)
        return queue

    async def lose(self, queue: ScriptedQueue) -> None:
        queue.break_streams()
        await queue.stop()


@pytest.fixture
async def houses(tmp_path: Path) -> AsyncIterator[Houses]:
    houses = Houses(tmp_path)
    yield houses
    for queue in houses.all:
        with suppress(Exception):
            await houses.lose(queue)


@pytest.fixture
async def publisher(houses: Houses) -> AsyncIterator[Publisher]:
    publisher = Publisher("test", UidSource(7), houses.table, {1: 0}.get)
    publisher.start()
    yield publisher
    await publisher.stop()


def bodies(queue: ScriptedQueue) -> list[int]:
    return [len(body) for batch in queue.batches for body in batch.bodies]


async def test_what_two_owners_died_of_is_refused(houses: Houses, publisher: Publisher) -> None:
    """A large message under way when two owners were lost goes to no third one; what was beside it does."""
    lethal, small, after = RecordingTicket(), RecordingTicket(), RecordingTicket()
    first = await houses.next()
    publish(publisher, messages_of(LETHAL), lethal)
    publish(publisher, messages_of(b"small"), small)
    await until(lambda: len(bodies(first)) == 2)
    await houses.lose(first)
    second = await houses.next()
    await until(lambda: len(bodies(second)) == 2)
    await houses.lose(second)
    third = await houses.next(answering=True)
    publish(publisher, messages_of(b"after"), after)
    assert await answered(lethal) == [(range(1), 1, pb.OTHER)]
    assert await answered(small) == await answered(after) == []
    assert bodies(third) == [5, 5]


async def test_small_ones_are_never_refused(houses: Houses, publisher: Publisher) -> None:
    """However many owners are lost with it, what an ordinary frame could hold reaches the next one."""
    ticket = RecordingTicket()
    for _ in range(5):
        queue = await houses.next()
        if len(houses.all) == 1:
            publish(publisher, messages_of(bytes(FRAME_BYTES // 2)), ticket)
        await until(lambda queue=queue: bodies(queue))
        await houses.lose(queue)
    await houses.next(answering=True)
    assert await answered(ticket) == []


async def test_a_broken_stream_is_no_death(houses: Houses, publisher: Publisher) -> None:
    """A process that comes back has not died, however often its stream breaks."""
    ticket, queue = RecordingTicket(), await houses.next()
    publish(publisher, messages_of(LETHAL), ticket)
    for times in range(1, 4):
        await until(lambda times=times: len(bodies(queue)) == times)
        queue.break_streams()
    queue.answering = True
    assert await answered(ticket) == []


async def test_suspects_go_one_at_a_time(houses: Houses, publisher: Publisher) -> None:
    """Of several large messages that were under way only the one that owners die of is refused, and none is lost."""
    tickets = [RecordingTicket() for _ in range(3)]
    first = await houses.next()
    for ticket in tickets:
        publish(publisher, messages_of(LETHAL), ticket)
    await until(lambda: len(bodies(first)) == 3)
    await houses.lose(first)
    second = await houses.next()
    await until(lambda: len(bodies(second)) == 1)
    fresh = RecordingTicket()
    publish(publisher, messages_of(LETHAL), fresh)
    await asyncio.sleep(0.2)
    assert len(bodies(second)) == 1
    second.say(pb.QueueFrame(done=[1]))
    assert await answered(tickets[0]) == []
    await until(lambda: len(bodies(second)) == 2)
    await houses.lose(second)
    third = await houses.next(answering=True)
    assert await answered(tickets[1]) == [(range(1), 1, pb.OTHER)]
    assert await answered(tickets[2]) == await answered(fresh) == []
    assert len(bodies(third)) == 2
