"""Partitions that are read back together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from services.common.clients.store import StoreClient
from services.common.errors import Unavailable
from services.rpc.store_pb2 import Fence, RecoveredBatch, RecoverRequest
from tests.support.queue_house import House, RawLink

_QUEUES = [f"q{number}" for number in range(12)]  # in most of the partitions


async def _replaced(house: House) -> tuple[list[int], RawLink, int]:
    """One process has read back queues of all partitions, with the same messages; and what its former used."""
    queue_ids = [await house.declare(name, durable=True) for name in _QUEUES]
    link = await house.link()
    for number in range(3):
        await link.publish(queue_ids, [b"%d" % number, bytes(1000)], persistent=True)
    former = house.queues.pop("queue-1")
    used = former._partitions._host.account.used
    await former.stop()
    await house.start_queue("queue-2")
    return queue_ids, await house.link("queue-2", origin=1001), used


async def _all_there(queue_ids: list[int], link: RawLink) -> bool:
    for consumer, queue_id in enumerate(queue_ids, start=1):
        link.bodies.clear()
        await link.attach(queue_id, consumer)
        await link.until(lambda: len(link.bodies) == 6)
        if link.bodies[::2] != [b"0", b"1", b"2"]:
            return False
    return True


async def test_a_message_of_many_is_there_once(house: House) -> None:
    """As it was with the former owner: one copy in the process, whichever partitions its queues are in."""
    queue_ids, link, _ = await _replaced(house)
    host = house.queues["queue-2"]._partitions._host
    messages = {
        id(entry.message)
        for partition in host.registry.partitions.values()
        for queue in partition.queues.values()
        for entry in queue.entries()
    }
    assert len(messages) == 6
    assert await _all_there(queue_ids, link)


async def test_a_store_of_a_former_release(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """It hears of one partition at a time, and all are read."""
    asked = list[Sequence[Fence]]()

    def recover(self: StoreClient, fences: Sequence[Fence]) -> AsyncIterator[RecoveredBatch]:
        asked.append(fences)
        request = RecoverRequest(partition=int(fences[0].lease.removeprefix("partition/")), fence=fences[0])
        return self._peer.stream(lambda stub: stub.Recover(request, wait_for_ready=True))

    monkeypatch.setattr(StoreClient, "recover", recover)
    queue_ids, link, _ = await _replaced(house)
    assert await _all_there(queue_ids, link)
    assert len({fences[0].lease for fences in asked}) == 8


async def test_a_store_that_fails_meanwhile(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read of those that had not ended is let go, and read again."""
    whole, failures = StoreClient.recover, iter(range(2))

    async def recover(self: StoreClient, fences: Sequence[Fence]) -> AsyncIterator[RecoveredBatch]:
        fails = next(failures, None) is not None
        async for message in whole(self, fences):
            if fails and message.batches:
                message.ClearField("ended")
                yield message
                raise Unavailable("away")
            yield message

    monkeypatch.setattr(StoreClient, "recover", recover)
    queue_ids, link, used = await _replaced(house)
    assert house.queues["queue-2"]._partitions._host.account.used == used
    assert await _all_there(queue_ids, link)


async def test_others_have_their_turns(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all has come already: with many partitions it is seconds of work, and leases have to be renewed."""
    whole, now, at = StoreClient.recover, 0, list[int]()

    async def count() -> None:
        nonlocal now
        while True:
            now += 1
            await asyncio.sleep(0)

    async def recover(self: StoreClient, fences: Sequence[Fence]) -> AsyncIterator[RecoveredBatch]:
        for message in [each async for each in whole(self, fences)]:
            for batch in message.batches:
                at.append(now)
                yield RecoveredBatch(batches=[batch])
            message.ClearField("batches")
            yield message

    counting = asyncio.create_task(count())
    monkeypatch.setattr(StoreClient, "recover", recover)
    queue_ids, link, _ = await _replaced(house)
    counting.cancel()
    assert len(set(at)) == len(at) > 8
    assert await _all_there(queue_ids, link)
