"""What fails at the end of something, a stream, a partition, a letter's way, leaves nothing hanging behind it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.common.clients.publisher import Publisher
from services.queue.dead_letters import office as dead_letter_office
from services.queue.links import link
from services.queue.links.transactions import Transactions
from services.queue.partitions import partitions
from services.queue.partitions.registry import Registry
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink


def _fails(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError


async def _over(link: RawLink) -> None:
    async with asyncio.timeout(60):
        await asyncio.gather(link._reader, return_exceptions=True)


@pytest.mark.parametrize("waits", [False, True])
async def test_a_decision_that_cannot_be_carried_out(
    house: House, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    """It ends the stream, and nothing waits for its answer, also when its frame has waited for the leases."""
    queue_id = await house.declare("q")
    host, peer = house.queues["queue-1"]._host, await house.link()
    prepare, complete = (
        pb.TransactionStep(transaction=1 << 40, step=step)
        for step in (pb.TransactionStep.PREPARE, pb.TransactionStep.COMPLETE)
    )
    await peer.send(publishes=[peer.batch(queue_id, [b"m"], transaction=1 << 40)], transactions=[prepare])
    await peer.until(lambda: any(frame.prepared for frame in peer.frames))
    monkeypatch.setattr(Transactions, "_decide", _fails)
    holds = host.leases_hold
    host.leases_hold = lambda: not waits and holds()
    await peer.send(transactions=[complete])
    if waits:
        await peer.until(lambda: any(each._suspended for each in host.links))
        host.leases_hold = holds
        host.resume(valid=True)
    await _over(peer)
    assert all(each.name != "test" for each in host.links)


@pytest.mark.parametrize("what", ["_decide", "_answer"])
async def test_what_the_store_has_said_cannot_be_carried_out(
    house: House, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """It ends the stream as well: no frame of the gateway's is being carried out, and it would wait for an answer."""
    queue_id = await house.declare("q", durable=True)
    host, peer = house.queues["queue-1"]._host, await house.link()
    monkeypatch.setattr(Transactions, what, _fails)
    alone = what == "_decide"  # that the store commits with what is written
    prepare = pb.TransactionStep(transaction=1 << 40, step=pb.TransactionStep.PREPARE, alone=alone)
    batch = peer.batch(queue_id, [b"m"], transaction=1 << 40, persistent=True)
    await peer.send(publishes=[batch], transactions=[prepare])
    await _over(peer)
    assert all(each.name != "test" for each in host.links)


async def test_a_queue_that_has_come_back(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """An auto-delete queue whose partition left and came back stays while it has consumers there."""
    monkeypatch.setattr(link, "_RETURN_SECONDS", 0.5)
    queue_id = await house.declare("q", auto_delete=True)
    first, second = await house.link(origin=1001, tells=True), await house.link(origin=1002)
    held = house.queues["queue-1"]._partitions
    registry, departed = held._host.registry, held._host.departed
    await first.attach(queue_id)
    await first.close()
    await second.until(lambda: departed)
    partition = registry.partition_of(queue_id)
    assert partition
    held._lose(partition)
    held._gain({partition.number: partition.epoch})
    assert (await second.attach(queue_id)).reason == pb.NONE
    await second.until(lambda: not departed)
    assert queue_id in registry.definitions
    assert queue_id not in registry.deleting


@pytest.mark.parametrize("what", ["frames", "suspend"])
async def test_a_partition_that_cannot_be_handed_over(house: House, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """It goes all the same, and another process serves it with what is on disk."""
    queue_id = await house.declare("q", durable=True)
    peer = await house.link()
    await peer.attach(queue_id, messages=0)
    await peer.publish(queue_id, [b"m"], persistent=True)
    first = house.queues["queue-1"]
    number = house.topology.queues[queue_id].partition
    works = getattr(partitions if what == "frames" else Registry, what)

    def fails(*arguments: Any) -> Any:
        partition = arguments[what == "suspend"]
        if partition.number == number:
            raise ZeroDivisionError
        return works(*arguments)

    monkeypatch.setattr(partitions if what == "frames" else Registry, what, fails)
    await house.start_queue("queue-2")
    first._partitions.pin(dict.fromkeys(range(8), "queue-2"))
    house.queues["queue-2"]._partitions.pin(dict.fromkeys(range(8), "queue-2"))
    later = await house.link("queue-2", origin=1001)
    await later.until(lambda: queue_id in house.queues["queue-2"]._host.registry.queues)
    assert await later.ready(queue_id, 1) == 1


async def test_letters_that_could_not_be_published(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not count among those under way: any number of failures does not make the office stand still."""
    monkeypatch.setattr(dead_letter_office, "_UNDER_WAY", 1)
    source = await house.declare("source", message_ttl=0, dead_letter_exchange="", dead_letter_routing_key="parked")
    parked = await house.declare("parked")
    publish, failures = Publisher.publish, 0

    def fails(self: Publisher, *arguments: Any) -> Any:
        nonlocal failures
        if failures < 2:
            failures += 1
            raise ZeroDivisionError
        return publish(self, *arguments)

    monkeypatch.setattr(Publisher, "publish", fails)
    peer = await house.link()
    await peer.attach(parked)
    await peer.publish(source, [b"1"])
    await peer.until(lambda: peer.bodies == [b"1"])
