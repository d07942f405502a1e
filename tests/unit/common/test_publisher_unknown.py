"""What is published to queues that the publisher has not heard of yet, and others route to already."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.common.clients.partition_table import PartitionTable
from services.common.clients.pressure import Congestion
from services.common.clients.publisher import Publisher
from services.common.clients.unknown import Unknown
from services.common.uid import UidSource
from services.rpc import queue_pb2 as pb
from tests.support.programs import until
from tests.unit.common.test_publisher import RecordingTicket, ScriptedQueue, answered, assign, messages_of, publish

QUEUE, PARTITION = 1, 0
REFUSAL = pb.Refusal(sequence=1, first=0, count=1, queue_id=QUEUE, reason=pb.NOT_OWNER)


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[ScriptedQueue]:
    """The queue process that has the queue."""
    owner = ScriptedQueue(tmp_path / "owner.sock")
    await owner.start()
    yield owner
    owner.break_streams()
    await owner.stop()


@pytest.fixture
def known() -> dict[int, int]:
    """The partitions of queues, as far as the publisher has heard of these."""
    return {}


@pytest.fixture
async def publisher(queue: ScriptedQueue, owner: ScriptedQueue, known: dict[int, int]) -> AsyncIterator[Publisher]:
    """With links to both; `queue` is the process that is asked."""
    table = PartitionTable()
    publisher = Publisher("test", UidSource(7), table, known.get)
    publisher.start()
    assign(table, p1=queue, p0=owner)
    await until(lambda: all(link.up for link in publisher._links.values()))
    queue.refuse = pb.NOT_OWNER
    yield publisher
    await publisher.stop()


def bodies(of: ScriptedQueue) -> list[bytes]:
    """All that came, in its order."""
    return [bytes(body) for batch in of.batches for body in batch.bodies]


async def test_nothing_overtakes_what_was_turned_away(
    queue: ScriptedQueue, owner: ScriptedQueue, known: dict[int, int], publisher: Publisher
) -> None:
    """What is published later waits for it, while the queue is not known and when it is."""
    tickets = [RecordingTicket() for _ in range(3)]
    publish(publisher, messages_of(b"1"), tickets[0])
    await until(lambda: publisher._parked)
    pressure = publish(publisher, messages_of(b"2"), tickets[1])
    assert pressure
    assert pressure.state is Congestion.FULL
    queue.answering = False
    known[QUEUE] = PARTITION
    publisher.queue_came(QUEUE)
    publish(publisher, messages_of(b"3"), tickets[2])
    for ticket in tickets:
        assert await answered(ticket) == []
    assert bodies(owner) == [b"1", b"2", b"3"]
    assert bodies(queue) == [b"1"]


async def test_nothing_overtakes_what_may_still_be_turned_away(
    queue: ScriptedQueue, owner: ScriptedQueue, known: dict[int, int], publisher: Publisher
) -> None:
    """The queue becomes known while another process than its owner has something for it: that answers first."""
    queue.answering = False
    first, second = RecordingTicket(), RecordingTicket()
    publish(publisher, messages_of(b"1"), first)
    await until(lambda: queue.batches)
    known[QUEUE] = PARTITION
    publisher.queue_came(QUEUE)
    publish(publisher, messages_of(b"2"), second)
    await asyncio.sleep(0.2)
    assert owner.batches == []
    queue.say(pb.QueueFrame(done=[1], refusals=[REFUSAL]))
    assert await answered(first) == await answered(second) == []
    assert bodies(owner) == [b"1", b"2"]


async def test_a_process_that_hears_of_no_queues_asks_for_their_owners(
    queue: ScriptedQueue, owner: ScriptedQueue, known: dict[int, int], publisher: Publisher
) -> None:
    """No other process is asked any more as soon as a queue is known."""
    ticket = RecordingTicket()
    publish(publisher, messages_of(b"1"), ticket)
    await until(lambda: publisher._parked)
    queue.answering = False
    known[QUEUE] = PARTITION
    assert await answered(ticket) == []
    assert bodies(owner) == [b"1"]


def test_it_is_always_the_same_one() -> None:
    """A process that is there again is not asked while another one has what came before, and stands."""
    first, second = SimpleNamespace(up=False), SimpleNamespace(up=True)
    unknown = Unknown(cast("Any", {"first": first, "second": second}), lambda _: None)
    assert unknown.link() is second
    first.up = True
    assert unknown.link() is second
    second.up = False
    assert unknown.link() is first
    first.up = False
    assert unknown.link() is None
