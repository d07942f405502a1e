"""What has waited for the router, or for the topology, is not carried out while leases may have run out.

The partition may be another process's by then, which gives out the same messages.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.common.errors import Unavailable
from services.queue.host import Host
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink


class Router:
    """Asked to delete a queue, it cannot be reached, which is known when it is told."""

    def __init__(self, host: Host) -> None:
        self.asked, self.decided = asyncio.Event(), asyncio.Event()

        host.topology.change = self._change  # type: ignore[method-assign]

    async def _change(self, _request: Any) -> Any:
        self.asked.set()
        await self.decided.wait()
        raise Unavailable("no router")


class Leases:
    """Of the queue process: they run out, and hold again when the partition of one queue is another's."""

    def __init__(self, host: Host) -> None:
        self._host, self._hold = host, host.leases_hold

    def run_out(self) -> None:
        self._host.leases_hold = bool

    def hold_without(self, queue_id: int) -> None:
        registry = self._host.registry
        partition = registry.partition_of(queue_id)
        assert partition
        registry.drop(partition)
        self._host.leases_hold = self._hold
        self._host.resume(valid=True)


@pytest.fixture
def host(house: House) -> Host:
    return house.queues["queue-1"]._host


async def _asked_to_delete(link: RawLink, queue_id: int, router: Router, **conditions: bool) -> None:
    delete = pb.DeleteRequest(queue_id=queue_id, **conditions)
    await link.send(requests=[pb.QueueRequest(id=1, delete=delete)])
    await router.asked.wait()


async def _heard_all(link: RawLink) -> None:
    await link.send(requests=[pb.QueueRequest(id=9, inspect=pb.InspectRequest(queue_id=0))])
    await link.until(lambda: any(reply.id == 9 for frame in link.frames for reply in frame.replies))


def _attached(link: RawLink) -> list[int]:
    return [attached.reason for frame in link.frames for attached in frame.attached]


async def test_a_deletion_that_failed(house: House, host: Host) -> None:
    """A consumer that waited for it gets nothing, and is sent to the next owner."""
    queue_id, leases, router = await house.declare("q"), Leases(host), Router(host)
    first, second = await house.link(origin=1001), await house.link(origin=1002)
    await first.publish(queue_id, [b"1"])
    await _asked_to_delete(first, queue_id, router)
    await second.send(attaches=[pb.AttachConsumer(consumer=1, queue_id=queue_id, messages=10, bytes=1000)])
    await asyncio.sleep(0.1)
    leases.run_out()
    router.decided.set()
    await asyncio.sleep(0.1)
    assert (_attached(second), second.bodies) == ([], [])
    leases.hold_without(queue_id)
    await second.until(lambda: _attached(second) == [pb.NOT_OWNER])
    assert second.bodies == []


async def test_a_deletion_if_empty_that_failed(house: House, host: Host) -> None:
    """What was published meanwhile is for the next owner."""
    queue_id, leases, router = await house.declare("q"), Leases(host), Router(host)
    first, second = await house.link(origin=1001), await house.link(origin=1002)
    await _asked_to_delete(first, queue_id, router, if_empty=True)
    await second.send(publishes=[second.batch(queue_id, [b"1"])])
    await _heard_all(second)
    leases.run_out()
    router.decided.set()
    await asyncio.sleep(0.1)
    assert not second.done()
    leases.hold_without(queue_id)
    await second.until(second.done)
    assert [reason for _, _, reason in second.refusals()] == [pb.NOT_OWNER]


async def test_a_queue_that_is_heard_of(house: House, host: Host) -> None:
    """A consumer that came before its queue was known is sent to the next owner."""
    queue_id, leases, link = await house.declare("q"), Leases(host), await house.link()
    await link.publish(queue_id, [b"1"])
    registry, unheard = host.registry, host.registry.unheard
    definition, queue = registry.definitions.pop(queue_id), registry.queues.pop(queue_id)  # type: ignore[attr-defined]
    unheard._has_place = bool
    await link.send(attaches=[pb.AttachConsumer(consumer=1, queue_id=queue_id, messages=10, bytes=1000)])
    await asyncio.sleep(0.1)
    leases.run_out()
    registry.definitions[queue_id], registry.queues[queue_id] = definition, queue  # type: ignore[index]
    unheard.heard(queue_id)
    await asyncio.sleep(0.1)
    assert (_attached(link), link.bodies) == ([], [])
    leases.hold_without(queue_id)
    await link.until(lambda: _attached(link) == [pb.NOT_OWNER])


async def test_a_stream_that_broke_meanwhile(house: House, host: Host) -> None:
    """Its consumer is not attached any more: it would be sent messages that it does not take."""
    queue_id, router = await house.declare("q"), Router(host)
    first, second = await house.link(origin=1001), await house.link(origin=1002)
    await first.publish(queue_id, [b"1"])
    await _asked_to_delete(first, queue_id, router)
    await second.send(attaches=[pb.AttachConsumer(consumer=1, queue_id=queue_id, messages=10, bytes=1000)])
    await asyncio.sleep(0.1)
    host.leases_hold, hold = bool, host.leases_hold
    router.decided.set()
    await asyncio.sleep(0.1)
    await second.close()
    await asyncio.sleep(0.1)
    host.leases_hold = hold
    host.resume(valid=True)
    await first.attach(queue_id)
    await first.until(lambda: first.bodies == [b"1"])
    assert not first.runs[0].redelivered


@pytest.mark.timeout(20)
async def test_a_consumer_that_came_and_went(house: House, host: Host) -> None:
    """Its stream broke, and then the partition was lost: the process goes on. It went in circles for ever."""
    queue_id, leases, router = await house.declare("q"), Leases(host), Router(host)
    first, second = await house.link(origin=1001), await house.link(origin=1002)
    await _asked_to_delete(first, queue_id, router)
    await second.send(attaches=[pb.AttachConsumer(consumer=1, queue_id=queue_id, messages=10, bytes=1000)])
    await second.send(detaches=[1])
    await _heard_all(second)
    leases.run_out()
    await second.close()
    await asyncio.sleep(0.1)
    leases.hold_without(queue_id)
    router.decided.set()
    await _heard_all(first)
