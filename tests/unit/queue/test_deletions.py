"""A queue that the router is asked to delete: no client is told that it is gone before it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.common.errors import Unavailable
from services.common.topology.slots import SlotId
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House


class Router:
    """Asked to delete a queue, it decides when it is told to."""

    def __init__(self, change: Any) -> None:
        self._change = change
        self.asked = asyncio.Event()
        self.decided = asyncio.Event()
        self.reached = True

    async def change(self, request: Any) -> Any:
        self.asked.set()
        await self.decided.wait()
        if not self.reached:
            raise Unavailable("no router")
        return await self._change(request)


@pytest.fixture
def router(house: House, monkeypatch: pytest.MonkeyPatch) -> Router:
    topology = house.queues["queue-1"]._host.topology
    slow = Router(topology.change)
    monkeypatch.setattr(topology, "change", slow.change)
    return slow


def _delete(queue_id: int, number: int, **conditions: bool) -> pb.QueueRequest:
    return pb.QueueRequest(id=number, delete=pb.DeleteRequest(queue_id=queue_id, **conditions))


def _replies(frames: list[pb.QueueFrame]) -> dict[int, int]:
    return {reply.id: reply.reason for frame in frames for reply in frame.replies}


async def test_asked_again(house: House, router: Router) -> None:
    """A gateway that lost its stream asks again: it hears what became of the first, which it did not hear."""
    queue_id = await house.declare("q")
    first, second = await house.link(origin=1001), await house.link(origin=1002)
    await first.send(requests=[_delete(queue_id, 1)])
    await router.asked.wait()
    await second.send(requests=[_delete(queue_id, 2), pb.QueueRequest(id=3, inspect=pb.InspectRequest(queue_id=0))])
    await second.until(lambda: 3 in _replies(second.frames))
    assert 2 not in _replies(second.frames)
    router.decided.set()
    await second.until(lambda: 2 in _replies(second.frames))
    assert _replies(second.frames)[2] in (pb.NONE, pb.UNKNOWN_QUEUE)
    assert queue_id not in house.queues["queue-1"]._host.registry.queues


async def test_it_stays(house: House, router: Router) -> None:
    """When the router could not be reached the next is asked for anew, and is told the same or has it deleted."""
    queue_id = await house.declare("q")
    first, second = await house.link(origin=1001), await house.link(origin=1002)
    await first.send(requests=[_delete(queue_id, 1)])
    await router.asked.wait()
    inspect = pb.QueueRequest(id=3, inspect=pb.InspectRequest(queue_id=queue_id))
    await second.send(requests=[_delete(queue_id, 2, if_unused=True), inspect])
    router.reached = False
    router.decided.set()
    await first.until(lambda: _replies(first.frames) == {1: pb.UNAVAILABLE})
    await second.until(lambda: _replies(second.frames).keys() == {2, 3})
    assert _replies(second.frames) == {2: pb.UNAVAILABLE, 3: pb.NONE}
    assert queue_id in house.queues["queue-1"]._host.registry.queues
    assert queue_id not in house.queues["queue-1"]._host.registry.deleting


async def test_consumers_wait(house: House, router: Router) -> None:
    """A client that wants to consume is told neither that it exists nor that it does not."""
    queue_id = await house.declare("q")
    first, second = await house.link(origin=1001), await house.link(origin=1002)
    await first.send(requests=[_delete(queue_id, 1)])
    await router.asked.wait()
    attached = asyncio.ensure_future(second.attach(queue_id))
    await asyncio.sleep(0.05)
    assert not attached.done()
    router.reached = False
    router.decided.set()
    assert (await attached).reason == pb.NONE


async def test_the_partition_leaves(house: House, router: Router) -> None:
    """Clients that wait are sent to the next owner, with any answer of the router, at any time."""
    queue_id = await house.declare("q")
    first, second = await house.link(origin=1001), await house.link(origin=1002)
    await first.send(requests=[_delete(queue_id, 1)])
    await router.asked.wait()
    await second.send(requests=[_delete(queue_id, 2), pb.QueueRequest(id=3, inspect=pb.InspectRequest(queue_id=0))])
    await second.until(lambda: 3 in _replies(second.frames))
    registry = house.queues["queue-1"]._host.registry
    partition = registry.partition_of(queue_id)
    assert partition
    registry.suspend(partition)
    registry.drop(partition)
    partition.replay()
    await second.until(lambda: _replies(second.frames).get(2) == pb.NOT_OWNER)
    router.decided.set()
    await first.until(lambda: 1 in _replies(first.frames))


async def test_the_news_comes_first(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else deletes it as this one is about to: that is said, for not every gateway has heard that news."""
    queue_id = await house.declare("q")
    link = await house.link(origin=1001)
    registry = house.queues["queue-1"]._host.registry
    begin = registry.deleting.begin

    def deleted_meanwhile(queue: SlotId) -> None:
        begin(queue)
        registry.delete(registry.definitions[queue])
        del registry.definitions[queue]  # type: ignore[attr-defined]

    monkeypatch.setattr(registry.deleting, "begin", deleted_meanwhile)
    await link.send(requests=[_delete(queue_id, 1)])
    await link.until(lambda: 1 in _replies(link.frames))
    assert _replies(link.frames) == {1: pb.UNKNOWN_QUEUE}
