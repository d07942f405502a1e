"""A gateway and a queue process that do not know of the same term of office over a partition."""

from __future__ import annotations

import asyncio

import pytest

from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House


@pytest.fixture
def lease_ttl_ms() -> int:
    """Renewed several times a second: with that, processes hear who comes, and what moves."""
    return 1000


@pytest.mark.parametrize("stray", [False, True])
async def test_a_request_for_another_term_is_not_served(house: House, *, stray: bool) -> None:
    """A former term, or one not known here yet; a request that names none is served in the present one."""
    queue_id = await house.declare("q")
    [epoch] = {partition.epoch for partition in house.queues["queue-1"]._host.registry.partitions.values()}
    link = await house.link()
    reasons = [
        (await link.attach(queue_id, consumer, again=True, stray=stray, term=term)).reason
        for consumer, term in enumerate((epoch - 1 or 9, epoch + 1, epoch, 0), 1)
    ]
    assert reasons == [pb.NOT_OWNER, pb.NOT_OWNER, pb.NONE, pb.NONE]


async def test_the_end_of_a_term_is_told_with_its_epoch(house: House) -> None:
    """So that a gateway that gets it late does not take it for the end of the next one."""
    link = await house.link()
    partitions = house.queues["queue-1"]._host.registry.partitions
    epochs = {number: partition.epoch for number, partition in partitions.items()}
    await house.start_queue("queue-2")
    async with asyncio.timeout(10):
        while len(partitions) != 4:
            await asyncio.sleep(0.02)
    await link.until(lambda: sum(len(frame.lost_terms) for frame in link.frames) == 4)
    lost = [pair for frame in link.frames for pair in zip(frame.lost_partitions, frame.lost_terms, strict=True)]
    assert dict(lost) == {number: epochs[number] for number in epochs.keys() - partitions.keys()}


async def test_what_was_given_back_in_another_term(house: House) -> None:
    """A holder in the present term keeps it; that it is settled is true in every term."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.attach(queue_id)
    await link.publish(queue_id, [b"1"])
    [queue] = [queue for queue in house.queues["queue-1"]._host.registry.queues.values() if queue.unsettled]
    for number, outcome in enumerate((pb.RELEASE, pb.RESTORE, pb.ABANDON, pb.ACCEPT), 1):
        assert list(queue.unsettled) == link.uids
        await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=outcome, uids=link.uids, term=9)])
        await link.ready(queue_id, number)
    assert not queue.unsettled
    assert link.bodies == [b"1"]


async def test_a_message_to_hold_of_another_term(house: House) -> None:
    """It is not delivered: that gateway would not report it to the next owner."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.publish(queue_id, [b"1"])
    get = pb.GetRequest(queue_id=queue_id)
    assert (await link.request(1, get=get, term=9)).reason == pb.NOT_OWNER
    assert (await link.request(2, get=get, term=1)).message.bodies == [b"1"]


async def test_what_is_published_for_another_term(house: House) -> None:
    """It has come late, or early: it is refused, and taken when it comes again for the present one."""
    queue_id = await house.declare("q")
    partition = house.queues["queue-1"]._host.registry.partition_of(queue_id)
    assert partition is not None
    link = await house.link(says_terms=True)
    await link.publish(queue_id, [b"1"])
    for epoch in (partition.epoch + 1, partition.epoch - 1):
        await link.publish(queue_id, [b"2"], terms=[pb.Term(partition=partition.number, epoch=epoch)])
    assert link.refusals() == [(0, 1, pb.NOT_OWNER)] * 3
    present = pb.Term(partition=partition.number, epoch=partition.epoch)
    await link.publish(queue_id, [b"3"], terms=[present])
    await link.publish(queue_id, [b"4"], resumed=[partition.number])
    await link.publish(queue_id, [b"5"])
    assert link.refusals() == [(0, 1, pb.NOT_OWNER)] * 4, "what follows the refused waits until that comes again"
    assert await link.ready(queue_id, 1) == 2
