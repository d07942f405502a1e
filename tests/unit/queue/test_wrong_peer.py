"""Streams that are not to be heard: meant for another queue process, or given up by their peer."""

from __future__ import annotations

import grpc
from structlog.testing import capture_logs

from services.common.few_lines import FewLines
from services.common.grpc_channel import connect
from services.queue.links.greeted import Greeted
from services.rpc import queue_pb2 as pb
from services.rpc.queue_pb2_grpc import QueueStub
from tests.support.queue_house import House
from tests.support.stream_ends import until


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


async def test_it_comes_again_and_again(house: House) -> None:
    """Who has not heard yet that the former process is gone: that is one line, not one for each, or each time."""
    house.queues["queue-1"]._host.few = FewLines(1, 3600.0)
    async with connect(house.settings.address_of("queue-1")) as channel:
        with capture_logs() as logged:
            for number in range(5):
                call = QueueStub(channel).Attach(wait_for_ready=True)
                hello = pb.Hello(origin=77, name=f"g{number % 2}", member="queue-1-of-before", number=number)
                await call.write(pb.LinkFrame(hello=hello))
                assert await call.code() == grpc.StatusCode.UNAVAILABLE
    told = [line for line in logged if "meant for another" in line["event"]]
    assert [(line["member"], "HOPLINE_QUEUE_ADVERTISE" in line["do"]) for line in told] == [("queue-1-of-before", True)]


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


async def test_what_is_said_late_on_a_stream_that_was_given_up(house: House) -> None:
    """It ends no later one, and nothing of it is carried out: the peer has sent that on the later one."""
    queue_id = await house.declare("q")
    link = await house.link()
    raw = link.batch(queue_id, [b"sent on the later one"])
    async with connect(house.settings.address_of("queue-1")) as channel:
        stub = QueueStub(channel)
        later, former = stub.Attach(wait_for_ready=True), stub.Attach(wait_for_ready=True)
        await later.write(pb.LinkFrame(hello=pb.Hello(origin=77, name="g", number=2), requests=[_inspect(1)]))
        assert isinstance(await later.read(), pb.QueueFrame)
        await former.write(pb.LinkFrame(hello=pb.Hello(origin=77, name="g", number=1), publishes=[raw]))
        assert await former.code() == grpc.StatusCode.UNAVAILABLE
        await later.write(pb.LinkFrame(requests=[_inspect(2)]))
        frame = await later.read()
        assert isinstance(frame, pb.QueueFrame)
        assert [reply.id for reply in frame.replies] == [2]
        later.cancel()
    assert await link.ready(queue_id, 1) == 0


async def test_a_stream_that_comes_when_a_later_one_is_over(house: House) -> None:
    """Is not heard either: all of it came again on the later one, was taken, and would be taken twice."""
    queue_id = await house.declare("q")
    link = await house.link()
    raw = link.batch(queue_id, [b"sent on the later one"])
    async with connect(house.settings.address_of("queue-1")) as channel:
        stub = QueueStub(channel)
        later, former = stub.Attach(wait_for_ready=True), stub.Attach(wait_for_ready=True)
        await later.write(pb.LinkFrame(hello=pb.Hello(origin=77, name="g", number=2), publishes=[raw]))
        assert isinstance(await later.read(), pb.QueueFrame)
        later.cancel()
        links = house.queues["queue-1"]._host.links
        await until(lambda: all(each.origin != 77 for each in links))
        await former.write(pb.LinkFrame(hello=pb.Hello(origin=77, name="g", number=1), publishes=[raw]))
        assert await former.code() == grpc.StatusCode.UNAVAILABLE
    assert await link.ready(queue_id, 1) == 1


def test_peers_that_are_forgotten() -> None:
    """Those that greeted longest ago: any number takes a bounded room, and one that greets now and then stays."""
    greeted = Greeted()
    assert greeted.is_latest(pb.Hello(origin=1, number=5))
    for origin in range(2, 5000):
        assert greeted.is_latest(pb.Hello(origin=origin, number=1))
        if origin % 500 == 0:
            assert greeted.is_latest(pb.Hello(origin=1, number=5))
    assert not greeted.is_latest(pb.Hello(origin=1, number=4))
    assert len(greeted._numbers) == 1024


def _inspect(number: int) -> pb.QueueRequest:
    return pb.QueueRequest(id=number, inspect=pb.InspectRequest(queue_id=5))
