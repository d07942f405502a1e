"""A queue that is deleted only if it is empty: what comes while the router is asked is not taken, and lost with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from services.common.errors import Unavailable
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House

Decides = Callable[[House, Callable[[Any], Awaitable[Any]], Any], Awaitable[Any]]
DELETED, STAYS, LEAVES = (pb.NONE, [pb.UNKNOWN_QUEUE], 0), (pb.UNAVAILABLE, [], 2), (pb.UNAVAILABLE, [pb.NOT_OWNER], 0)


async def _deletes(_house: House, change: Callable[[Any], Awaitable[Any]], request: Any) -> Any:
    return await change(request)


async def _is_away(_house: House, _change: Any, _request: Any) -> Any:
    raise Unavailable("no router")


async def _partition_leaves(house: House, _change: Any, request: Any) -> Any:
    registry = house.queues["queue-1"]._host.registry
    partition = registry.partition_of(request.delete_queue.queue_id)
    assert partition
    registry.suspend(partition)
    registry.drop(partition)
    partition.replay()
    raise Unavailable("no router")


@pytest.mark.parametrize(("decides", "told"), [(_deletes, DELETED), (_is_away, STAYS), (_partition_leaves, LEAVES)])
async def test_what_comes_meanwhile(
    house: House, monkeypatch: pytest.MonkeyPatch, decides: Decides, told: tuple[int, list[int], int]
) -> None:
    """A message waits until it is decided; then it is told that the queue is gone, or taken, or for the next owner."""
    queue_id = await house.declare("q")
    link, topology = await house.link(), house.queues["queue-1"]._host.topology
    change, asked, decided = topology.change, asyncio.Event(), asyncio.Event()

    async def slow(request: Any) -> Any:
        asked.set()
        await decided.wait()
        return await decides(house, change, request)

    monkeypatch.setattr(topology, "change", slow)
    delete = pb.DeleteRequest(queue_id=queue_id, if_empty=True)
    await link.send(requests=[pb.QueueRequest(id=1, delete=delete)])
    await asked.wait()
    await link.send(publishes=[link.batch(queue_id, [b"1", b"2"])], requests=[_inspect(queue_id, 2)])
    await link.send(requests=[_inspect(0, 3)])
    await link.until(lambda: _replies(link.frames).keys() == {3})
    assert link.done() == []
    decided.set()
    await link.until(lambda: link.done() and _replies(link.frames).keys() == {1, 2, 3})
    reason, refused, left = told
    assert _replies(link.frames)[1].reason == reason
    assert [reason for _, _, reason in link.refusals()] == refused
    assert _replies(link.frames)[2].message_count == left


async def test_what_is_settled_meanwhile(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is as with any other queue, and so is the queue when it stays."""
    queue_id = await house.declare("q")
    link, host = await house.link(), house.queues["queue-1"]._host
    await link.publish(queue_id, [b"1"])
    await link.attach(queue_id)
    await link.until(lambda: link.bodies)
    decided = asyncio.Event()

    async def slow(_request: Any) -> Any:
        await decided.wait()
        raise Unavailable("no router")

    monkeypatch.setattr(host.topology, "change", slow)
    delete = pb.DeleteRequest(queue_id=queue_id, if_empty=True)
    await link.send(requests=[pb.QueueRequest(id=1, delete=delete)])
    await link.send(settles=[pb.Settle(queue_id=queue_id, uids=link.uids)])
    await link.until(lambda: host.account.used == 0)
    decided.set()
    await link.until(lambda: _replies(link.frames).keys() == {1})
    await link.publish(queue_id, [b"2"])
    await link.until(lambda: link.bodies == [b"1", b"2"])


def _inspect(queue_id: int, number: int) -> pb.QueueRequest:
    return pb.QueueRequest(id=number, inspect=pb.InspectRequest(queue_id=queue_id))


def _replies(frames: list[pb.QueueFrame]) -> dict[int, pb.QueueReply]:
    return {reply.id: reply for frame in frames for reply in frame.replies}
