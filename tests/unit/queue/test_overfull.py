"""Publishers are held back from a queue that has more than it wants, and hear when they may go on."""

from __future__ import annotations

import pytest

from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink


def blocked(link: RawLink) -> list[list[int]]:
    """The queues of each word of where publishers have to wait."""
    return [list(frame.blocked.queue_ids) for frame in link.frames if frame.HasField("blocked")]


async def test_until_there_is_room(house: House) -> None:
    """All gateways are told, and those that come later; consumers make room, and the end of the queue does."""
    queue_id = await house.declare("q", max_length=10, overflow="producer-flow-control")
    link, other = await house.link(), await house.link(origin=1001)
    await link.publish(queue_id, [b"x"] * 10)
    assert blocked(link) == []
    await link.publish(queue_id, [b"x"])
    await link.until(lambda: blocked(link) == [[queue_id]])
    await other.until(lambda: blocked(other) == [[queue_id]])
    late = await house.link(origin=1002)
    await late.until(lambda: blocked(late) == [[queue_id]])
    assert link.refusals() == []
    await other.attach(queue_id, messages=2)
    await other.until(lambda: len(other.bodies) == 2)
    await other.send(credits=[pb.Credit(consumer=1, messages=1)])
    await link.until(lambda: blocked(link) == [[queue_id], []])
    assert not house.queues["queue-1"]._host.full


async def test_a_queue_that_goes(house: House) -> None:
    """No publisher waits for one that is deleted."""
    queue_id = await house.declare("q", max_length=1, overflow="producer-flow-control")
    link = await house.link()
    await link.publish(queue_id, [b"x"] * 2)
    await link.until(lambda: blocked(link) == [[queue_id]])
    await house.delete("q")
    await link.until(lambda: blocked(link) == [[queue_id], []])


async def commit(link: RawLink, queue_id: int, count: int, transaction: int) -> None:
    """Messages of a transaction; returns when it is carried out."""
    batch = link.batch(queue_id, [b"x"] * count, transaction=transaction)
    prepare = pb.TransactionStep(transaction=transaction, step=pb.TransactionStep.PREPARE)
    await link.send(publishes=[batch], transactions=[prepare])
    await link.until(lambda: any(each.transaction == transaction for frame in link.frames for each in frame.prepared))
    complete = pb.TransactionStep(transaction=transaction, step=pb.TransactionStep.COMPLETE)
    await link.send(transactions=[complete])
    await link.until(lambda: any(transaction in frame.completed for frame in link.frames))


async def test_what_transactions_bring(house: House) -> None:
    """All who publish to that queue are told, by a transaction or not."""
    queue_id = await house.declare("q", max_length=10, overflow="producer-flow-control")
    link, other = await house.link(), await house.link(origin=1001)
    await commit(link, queue_id, 10, 900)
    assert blocked(link) == []
    await commit(link, queue_id, 1, 901)
    await link.until(lambda: blocked(link) == [[queue_id]], seconds=5)
    await other.until(lambda: blocked(other) == [[queue_id]], seconds=5)


async def test_what_comes_back(house: House) -> None:
    """Consumers held it, and do not any more: by their word, or because they are gone."""
    queue_id = await house.declare("q", max_length=10, overflow="producer-flow-control")
    link, other = await house.link(), await house.link(origin=1001)
    for again in (False, True):
        await link.attach(queue_id, consumer := 1 + again)
        await link.publish(queue_id, [b"x"] * 11)
        await link.until(lambda: len(link.uids) == 11)
        await link.send(detaches=[consumer])
        assert blocked(other) == []
        if again:
            await link.close()
        else:
            await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=link.uids)])
        await other.until(lambda: blocked(other), seconds=5)
        await other.request(1, purge=pb.PurgeRequest(queue_id=queue_id))
        await other.until(lambda: blocked(other) == [[queue_id], []], seconds=5)
        link.uids.clear()
        other.frames.clear()


@pytest.mark.parametrize("durable", [False, True])
async def test_the_next_owner(house: House, *, durable: bool) -> None:
    """It holds publishers back from what it has read back, without a word from them."""
    queue_id = await house.declare("q", durable=durable, max_length=10, overflow="producer-flow-control")
    link = await house.link()
    await link.publish(queue_id, [b"x"] * 11, persistent=durable)
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-1")
    link = await house.link(origin=1001)
    await link.until(lambda: blocked(link) == [[queue_id]], seconds=5)
