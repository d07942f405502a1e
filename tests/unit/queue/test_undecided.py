"""A partition leaves while a transaction is undecided there."""

from __future__ import annotations

import asyncio

import pytest

from services.queue.partitions import partitions
from services.queue.partitions.partition import PartitionState
from services.rpc import queue_pb2 as pb
from services.rpc import store_pb2
from tests.support.queue_house import House
from tests.unit.queue.test_hand_over import another_owner


async def test_undecided_transaction(house: House) -> None:
    """A partition stays until a transaction that is prepared there is decided, and then all of it moves."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    raw = link.batch(queue_id, [b"1"], transaction=5)
    await link.send(publishes=[raw], transactions=[pb.TransactionStep(transaction=5)])
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    stopping = asyncio.create_task(house.queues.pop("queue-1").stop())
    await asyncio.sleep(0.2)
    assert not stopping.done()
    await link.send(transactions=[pb.TransactionStep(transaction=5, step=pb.TransactionStep.COMPLETE)])
    await stopping
    await house.start_queue("queue-1")
    assert await (await house.link(origin=1001)).ready(queue_id, 1) == 1


@pytest.mark.parametrize("committed", [True, False])
async def test_a_transaction_that_stays_undecided(
    house: House, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    """The store does, before the partition goes: what is committed goes with it, or the gateway hears that nothing is.

    The next owner would not have what is not on disk, and its gateway would take it for done.
    """
    monkeypatch.setattr(partitions, "_PATIENCE", 3.0)
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    raw = link.batch(queue_id, [b"1"], transaction=5)
    await link.send(publishes=[raw], transactions=[pb.TransactionStep(transaction=5)])
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    store = house.queues["queue-1"]._store
    if committed:
        assert (await store.commit_transaction(5, 0)).committed
    await house.queues.pop("queue-1").stop()
    said = [prepared.reason for frame in link.frames for prepared in frame.prepared]
    assert said == ([pb.NONE] if committed else [pb.NONE, pb.UNAVAILABLE])
    await house.start_queue("queue-1")
    assert await (await house.link(origin=1001)).ready(queue_id, int(committed)) == int(committed)
    if not committed:
        assert not (await house.queues["queue-1"]._store.commit_transaction(5, 0)).committed


async def test_a_store_that_does_not_say(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that moves waits for as long as the store is away: what is committed then goes with it."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    raw = link.batch(queue_id, [b"1"], transaction=5)
    await link.send(publishes=[raw], transactions=[pb.TransactionStep(transaction=5)])
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    owner = house.queues["queue-1"]
    resolve, back = owner._host.store.resolve_transaction, asyncio.Event()

    async def away(number: int) -> store_pb2.TransactionOutcome:
        await back.wait()
        return await resolve(number)

    monkeypatch.setattr(owner._host.store, "resolve_transaction", away)
    monkeypatch.setattr(partitions, "_SHORTLY", 0.1)
    partition = owner._host.registry.partition_of(queue_id)
    assert partition
    moving = asyncio.create_task(owner._partitions._hand_over([partition], 0.1))
    await asyncio.sleep(0.5)
    assert partition.state is PartitionState.LEAVING
    assert (await owner._store.commit_transaction(5, 0)).committed
    back.set()
    assert await moving == [partition.number]
    await another_owner(house)
    assert await (await house.link(origin=1001)).ready(queue_id, 1) == 1


async def test_place_of_a_transaction(house: House) -> None:
    """Messages of a transaction stand where it was prepared, for this owner and the next."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    raw = link.batch(queue_id, [b"1"], transaction=5, persistent=True)
    await link.send(publishes=[raw], transactions=[pb.TransactionStep(transaction=5)])
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    await link.publish(queue_id, [b"2"])
    assert (await house.queues["queue-1"]._store.commit_transaction(5, 1)).committed
    await link.send(transactions=[pb.TransactionStep(transaction=5, step=pb.TransactionStep.COMPLETE)])
    await link.until(lambda: any(5 in frame.completed for frame in link.frames))
    await link.attach(queue_id, browse=True)
    await link.until(lambda: link.bodies == [b"1", b"2"])
    await another_owner(house)
    link = await house.link(origin=1001)
    await link.attach(queue_id)
    await link.until(lambda: link.bodies == [b"1", b"2"])
