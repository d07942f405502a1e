"""A stream that is meant for another queue process, at an address that was used again."""

from __future__ import annotations

import grpc

from services.common.grpc_channel import connect
from services.rpc import queue_pb2 as pb
from services.rpc.queue_pb2_grpc import QueueStub
from tests.support.queue_house import House


async def test_another_member_is_refused(house: House) -> None:
    """Nothing it says is heard, nor answered as if it had been: what it settles is another process's to know."""
    queue_id = await house.declare("q")
    link = await house.link()
    raw = link.batch(queue_id, [b"lost here"])
    async with connect(house.settings.address_of("queue-1")) as channel:
        call = QueueStub(channel).Attach(wait_for_ready=True)
        hello = pb.Hello(origin=77, name="g", member="queue-1-of-before", tells=True)
        settle = pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=[1])
        await call.write(pb.LinkFrame(hello=hello, publishes=[raw], settles=[settle]))
        assert (await call.code(), await call.details()) == (
            grpc.StatusCode.UNAVAILABLE,
            f"this is {house.queues['queue-1']._member}, not queue-1-of-before",
        )
    assert await link.ready(queue_id, 1) == 0


async def test_the_member_that_is_meant(house: House) -> None:
    """It takes the stream."""
    member = house.queues["queue-1"]._member
    async with connect(house.settings.address_of("queue-1")) as channel:
        call = QueueStub(channel).Attach(wait_for_ready=True)
        asked = pb.QueueRequest(id=1, inspect=pb.InspectRequest(queue_id=5))
        await call.write(pb.LinkFrame(hello=pb.Hello(origin=77, name="g", member=member), requests=[asked]))
        frame = await call.read()
        assert isinstance(frame, pb.QueueFrame)
        assert [reply.id for reply in frame.replies] == [1]
        call.cancel()
