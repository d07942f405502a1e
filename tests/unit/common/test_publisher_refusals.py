"""What a publisher makes of refusals that come late, or that it cannot take in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.common.clients.partition_table import PartitionTable
from services.common.clients.publisher import Publisher
from services.common.message.indexes import chosen
from services.common.uid import UidSource
from services.rpc import queue_pb2 as pb
from tests.support.programs import until
from tests.unit.common.test_publisher import (
    RecordingTicket,
    ScriptedQueue,
    answered,
    assign,
    messages_of,
    publish,
    under_way,
)


@pytest.fixture
async def table() -> PartitionTable:
    """Which process serves which partition."""
    return PartitionTable()


@pytest.fixture
async def publisher(table: PartitionTable) -> AsyncIterator[Publisher]:
    """Queue 1 is of partition 0."""
    publisher = Publisher("test", UidSource(7), table, {1: 0}.get)
    publisher.start()
    yield publisher
    await publisher.stop()


@pytest.fixture
async def following(tmp_path: Path) -> AsyncIterator[ScriptedQueue]:
    """Another queue process, which may be the next owner."""
    following = ScriptedQueue(tmp_path / "b.sock")
    await following.start()
    yield following
    following.break_streams()
    await following.stop()


async def test_nothing_overtakes_what_its_owner_refuses_that_lost_the_partition_for_a_while(
    queue: ScriptedQueue, table: PartitionTable, publisher: Publisher
) -> None:
    """An owner that has a partition again is given no more before it has answered what it had before."""
    assign(table, p0=queue)
    [first], second = await under_way(publisher, queue, b"1"), RecordingTicket()
    assign(table, epoch=2, p0=queue)
    publish(publisher, messages_of(b"2"), second)
    await asyncio.sleep(0.2)
    assert len(queue.batches) == 1
    queue.answering = True
    queue.say(
        pb.QueueFrame(done=[1], refusals=[pb.Refusal(sequence=1, first=0, count=1, queue_id=1, reason=pb.NOT_OWNER)])
    )
    assert await answered(first) == await answered(second) == []
    assert [bytes(body) for batch in queue.batches[1:] for body in batch.bodies] == [b"1", b"2"]


@pytest.mark.parametrize("reason", [pb.OVERFLOW, pb.NOT_OWNER])
async def test_a_refusal_that_cannot_be_heard(
    queue: ScriptedQueue,
    table: PartitionTable,
    publisher: Publisher,
    monkeypatch: pytest.MonkeyPatch,
    reason: pb.Reason.ValueType,
) -> None:
    """What was refused is not taken for safe, though all else of its batch is."""

    def fails(*_: Any) -> None:
        raise ZeroDivisionError

    assign(table, p0=queue)
    monkeypatch.setattr(publisher, "_partition_of" if reason == pb.NOT_OWNER else "refused", fails)
    ticket = RecordingTicket()
    queue.refuse = reason
    await until(lambda: publisher._links[queue.address].up)
    # Its place is not looked for anew, which is broken.
    publisher._places[1] = publisher._links[queue.address], -1
    publish(publisher, messages_of(b"1", b"2"), ticket)
    assert await answered(ticket) == [(range(1), 1, pb.OTHER)]


async def test_a_fan_out_that_is_refused_goes_again_once(
    queue: ScriptedQueue, table: PartitionTable, publisher: Publisher
) -> None:
    """However many queues of a partition refuse a message, it is sent again with all of them, in one copy."""
    publisher._partition_of = dict.fromkeys(range(1, 6), 0).get
    assign(table, p0=queue)
    queue.answering = False
    tickets = [RecordingTicket(), RecordingTicket()]
    for ticket in tickets:
        publish(publisher, messages_of(b"1", b"2", queue_ids=(1, 2, 3, 4, 5)), ticket)
    await until(lambda: queue.batches)
    queue.answering = True
    refusals = [
        pb.Refusal(sequence=1, first=0, count=4, queue_id=queue_id, reason=pb.NOT_OWNER) for queue_id in range(1, 6)
    ]
    queue.say(pb.QueueFrame(done=[1], refusals=refusals))
    for ticket in tickets:
        assert await answered(ticket) == []
    [again] = queue.batches[1:]
    assert (len(again.bodies), len(again.queues), list(again.resent)) == (4, 5, [0, 1, 2, 3])


@pytest.mark.parametrize("refused", [(1,), (1, 2)], ids=["in part", "all of it"])
async def test_what_was_turned_away_is_not_sent_again_with_the_rest(
    queue: ScriptedQueue,
    following: ScriptedQueue,
    table: PartitionTable,
    publisher: Publisher,
    refused: tuple[int, ...],
) -> None:
    """Its owner dies after that: the next one is given each message for each queue once, and is heard once."""
    publisher._partition_of = {1: 0, 2: 1}.get
    assign(table, p0=queue, p1=queue)
    queue.answering = False
    await until(lambda: publisher._links[queue.address].up)
    ticket = RecordingTicket()
    publish(publisher, messages_of(b"1", b"2", b"3", queue_ids=(1, 2)), ticket)
    await until(lambda: queue.batches)
    some = [{"queue_id": queue_id, "first": 1 if len(refused) == 1 else 0} for queue_id in refused]
    refusals = [pb.Refusal(sequence=1, count=3 - each["first"], reason=pb.NOT_OWNER, **each) for each in some]
    queue.say(pb.QueueFrame(refusals=refusals))
    await until(lambda: len(publisher._moving) == len(refused))
    assign(table, epoch=2, p0=following, p1=following)
    assert await answered(ticket) == []
    given = [
        (batch.uids[index], its.queue_id)
        for batch in following.batches
        for its in batch.queues
        for index in chosen(its)
    ]
    assert len(given) == len(set(given)) == 6


@pytest.mark.parametrize("again", [pb.NONE, pb.NO_CONSUMERS], ids=["taken", "refused"])
async def test_the_last_word_of_a_queue_counts(
    queue: ScriptedQueue,
    following: ScriptedQueue,
    table: PartitionTable,
    publisher: Publisher,
    again: pb.Reason.ValueType,
) -> None:
    """What an owner has refused that dies before it is done is asked again: what that queue said first is forgotten."""
    publisher._partition_of = {1: 0, 2: 1}.get
    assign(table, p0=queue, p1=following)
    queue.answering, following.refuse = False, pb.OVERFLOW
    await until(lambda: all(link.up for link in publisher._links.values()))
    ticket = RecordingTicket()
    publish(publisher, messages_of(b"1", b"2", queue_ids=(1, 2)), ticket)
    await until(lambda: queue.batches and following.batches)
    refusal = pb.Refusal(sequence=1, first=0, count=2, queue_id=1, reason=pb.NO_CONSUMERS)
    queue.say(pb.QueueFrame(refusals=[refusal]))
    [attempt] = publisher._links[queue.address].under_way()
    await until(lambda: len(attempt.delivery.refusals) == 2)
    queue.answering, queue.refuse = True, again
    queue.break_streams()
    refused = sorted((queue_id, list(numbers), reason) for numbers, queue_id, reason in await answered(ticket))
    assert refused == ([(1, [0], again)] if again else []) + [(2, [0], pb.OVERFLOW)]
