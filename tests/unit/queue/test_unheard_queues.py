"""What is for a queue that its owner has not heard of waits while the router does not count on that owner.

The router answers declares without a process that lost its place: its way to the router was cut, or it stood still,
while its leases hold. "No such queue" would have a gateway confirm what is nowhere.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink

_PREPARE = pb.TransactionStep(transaction=7, step=pb.TransactionStep.PREPARE)


class _Cut:
    """The way of the queue process to the router."""

    def __init__(self, house: House) -> None:
        self._topology = house.queues["queue-1"]._topology

    async def begin(self) -> None:
        """Returns when the process has no place any more."""
        assert self._topology._watching is not None
        self._topology._watching.cancel()
        while self._topology.has_place():
            await asyncio.sleep(0.05)

    def end(self) -> None:
        self._topology._watching = self._topology._tasks.start(self._topology._keep_watching(), "topology")


@pytest.fixture
async def cut(house: House) -> _Cut:
    """Already begun."""
    begun = _Cut(house)
    await begun.begin()
    return begun


def _answers(link: RawLink, name: str) -> list[Any]:
    return [each for frame in link.frames for each in getattr(frame, name)]


async def _nothing_for_a_while(link: RawLink) -> None:
    await asyncio.sleep(0.3)
    assert not link.done()
    assert not link.refusals()
    assert not any(_answers(link, name) for name in ("prepared", "attached", "replies"))


async def test_publish(house: House, cut: _Cut) -> None:
    """A message is confirmed when it is in the queue, and a consumer gets it."""
    queue_id, link = await house.declare("q", durable=True), await house.link()
    await link.send(publishes=[link.batch(queue_id, [b"1"], persistent=True)])
    await link.send(attaches=[pb.AttachConsumer(consumer=1, queue_id=queue_id, messages=10, bytes=1000)])
    await _nothing_for_a_while(link)
    cut.end()
    await link.until(lambda: bool(link.done()) and link.bodies == [b"1"])
    assert not link.refusals()


async def test_transaction(house: House, cut: _Cut) -> None:
    """It is prepared when all of it is."""
    queue_id, link = await house.declare("q", durable=True), await house.link()
    await link.send(publishes=[link.batch(queue_id, [b"1"], persistent=True, transaction=7)], transactions=[_PREPARE])
    await _nothing_for_a_while(link)
    cut.end()
    await link.until(lambda: bool(_answers(link, "prepared")))
    [prepared] = _answers(link, "prepared")
    assert (prepared.reason, prepared.parts) == (pb.NONE, 1)


async def test_request(house: House, cut: _Cut) -> None:
    """A question is answered when the queue is known, not with "there is none"."""
    queue_id, link = await house.declare("q"), await house.link()
    await link.send(requests=[pb.QueueRequest(id=5, inspect=pb.InspectRequest(queue_id=queue_id))])
    await _nothing_for_a_while(link)
    cut.end()
    await link.until(lambda: bool(_answers(link, "replies")))
    [reply] = _answers(link, "replies")
    assert reply.reason == pb.NONE


async def test_queue_that_is_gone(house: House, cut: _Cut) -> None:
    """When the owner has its place again, and hears of no such queue, there is none."""
    queue_id = await house.declare("q", durable=True)
    await house.delete("q")
    link = await house.link()
    await link.send(publishes=[link.batch(queue_id, [b"1"], persistent=True)])
    await _nothing_for_a_while(link)
    cut.end()
    await link.until(lambda: bool(link.done()))
    assert [reason for _, _, reason in link.refusals()] == [pb.UNKNOWN_QUEUE]
