"""How often a message has been tried is known over changes of owner, where a delivery limit asks for it."""

from __future__ import annotations

from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House


async def another_owner(house: House) -> None:
    """The queue process ends, and starts again."""
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-1")


async def test_attempts_are_counted_on(house: House) -> None:
    """A delivery limit is the same over any number of owners: what one knows of attempts is handed over with it."""
    limits = {"delivery_limit": 3, "dead_letter_exchange": "", "dead_letter_routing_key": "parked"}
    queue_id, parked = await house.declare("q", durable=True, **limits), await house.declare("parked", durable=True)
    await (await house.link()).publish(queue_id, [b"1"], persistent=True)
    for origin in range(1001, 1005):
        if origin > 1001:
            await another_owner(house)
        link = await house.link(origin=origin)
        assert await link.ready(queue_id, 1) == 1
        await link.attach(queue_id, messages=1)
        await link.until(lambda link=link: link.uids)
        await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=link.uids)], detaches=[1])
        await link.until(lambda link=link: any(frame.detached for frame in link.frames))
        await link.close()
    link = await house.link(origin=1005)
    await link.attach(parked)
    await link.until(lambda: link.bodies == [b"1"], seconds=10)


async def test_attempts_of_a_letter_are_counted_on(house: House) -> None:
    """A message that was tried too often, and is not taken as a dead letter yet, is not tried as often again."""
    limits = {"delivery_limit": 2, "dead_letter_exchange": "", "dead_letter_routing_key": "full"}
    queue_id = await house.declare("q", durable=True, **limits)
    await house.declare("full", durable=True, max_length=0, overflow="reject-publish")
    link = await house.link()
    await link.publish(queue_id, [b"1"], persistent=True)
    await link.attach(queue_id)
    for count in range(1, 4):
        await link.until(lambda count=count: len(link.uids) == count)
        await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=link.uids[-1:])])
    assert await link.ready(queue_id, 1) == 0
    await another_owner(house)
    queue = house.queues["queue-1"]._host.registry.queues[queue_id]
    assert [entry.attempts for entry in queue.entries()] == [3]
