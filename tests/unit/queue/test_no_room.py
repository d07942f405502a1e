"""A store without room for messages: consumers make some, and no partition is stuck on its way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from services.common.disk import Room
from services.queue.partitions import partitions
from services.queue.partitions.partition import Partition, PartitionState
from services.rpc import queue_pb2 as pb
from services.store import committer
from tests.support.queue_house import House, RawLink

_TOTAL = 1 << 30
_NEVER = 8 << 20  # bytes of such a disk that messages never get


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries come soon."""
    monkeypatch.setattr(committer, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(partitions, "_PATIENCE", 0.1)


def provider(house: House) -> Any:
    return house.store._engine.provider


def has_room(house: House, free: int) -> None:
    """From now on."""
    disk = house.store._engine._disk
    disk._room = lambda: Room(free, _TOTAL)
    disk.look()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


async def held(house: House, link: RawLink, queue_id: int) -> None:
    """A persistent message waits for room, and all gateways know that there is none."""
    has_room(house, _NEVER)
    raw = link.batch(queue_id, [b"held"], persistent=True)
    await link.send(publishes=[raw])
    await until(lambda: not house.queues["queue-1"]._partitions._room)
    await until(lambda: house.store._engine._committer._held)


def of_queue(house: House, queue_id: int, name: str = "queue-1") -> Partition | None:
    number = house.topology.queues[queue_id].partition
    return house.queues[name]._host.registry.partitions.get(number)


async def test_consumers_make_room(house: House) -> None:
    """What is acknowledged is gone from the disk while messages of the same process wait for room."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.publish(queue_id, [b"a", b"b"], persistent=True)
    assert len(provider(house)._contents) == 1
    await held(house, link, queue_id)
    await link.attach(queue_id)
    await link.until(lambda: link.bodies == [b"a", b"b", b"held"])
    await link.send(settles=[pb.Settle(queue_id=queue_id, uids=link.uids)])
    await until(lambda: not provider(house)._contents)
    assert not provider(house)._entries
    assert 2 not in link.done()
    has_room(house, _TOTAL)
    await link.until(lambda: 2 in link.done())
    assert not provider(house)._entries


async def test_a_partition_on_its_way_is_not_stuck(house: House) -> None:
    """Where nothing would be lost, it moves without what there is no room to write: the next owner serves it."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.publish(queue_id, [b"a"], persistent=True)
    await held(house, link, queue_id)
    await link.attach(queue_id)
    moved = of_queue(house, queue_id)
    assert moved
    await asyncio.wait_for(house.queues["queue-1"]._partitions._move([moved]), 30)
    await until(lambda: moved.state is PartitionState.GONE)
    await link.until(lambda: (0, 1, pb.NOT_OWNER) in link.refusals())
    await until(lambda: (back := of_queue(house, queue_id)) and back.state is PartitionState.SERVING)
    assert await link.ready(queue_id, 7) == 1


async def test_what_only_memory_has_is_not_left_behind(house: House) -> None:
    """A partition with transient messages goes when they are written, however long there is no room for them."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.publish(queue_id, [b"transient"])
    await held(house, link, queue_id)
    moved = of_queue(house, queue_id)
    assert moved
    moving = asyncio.ensure_future(house.queues["queue-1"]._partitions._move([moved]))
    await asyncio.sleep(0.5)
    assert moved.state is PartitionState.WRITTEN
    has_room(house, _TOTAL)
    await asyncio.wait_for(moving, 30)
    await until(lambda: (back := of_queue(house, queue_id)) and back.state is PartitionState.SERVING)
    assert await link.ready(queue_id, 7) == 2


async def test_no_move_begins_without_room(house: House) -> None:
    """A process that joins gets its share when there is room for what is handed over."""
    queue_id = await house.declare("q", durable=True)
    await held(house, await house.link(), queue_id)
    joined = await house.start_queue("queue-2")
    for _ in range(3):
        await joined._partitions._leases._beat()  # type: ignore[union-attr]
    assert not joined._host.registry.partitions
    has_room(house, _TOTAL)
    await until(lambda: len(joined._host.registry.partitions) == 4)
