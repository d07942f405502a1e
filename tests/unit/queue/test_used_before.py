"""Auto-delete queues that had consumers of a former owner: whether they stay for these, or none is to come again."""

from __future__ import annotations

import asyncio

import pytest

from services.common.clients.topology import TopologyClient
from services.queue.host import Host
from services.queue.links import untold
from services.queue.machine import use
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink

ONE, OTHER = 1001, 1002  # origins of gateways


class Used:
    """A queue that both gateways have used, after its owner was replaced; the gateways have places at the router."""

    def __init__(self, house: House, queue_id: int, places: list[TopologyClient]) -> None:
        self._house, self.queue_id, self._places = house, queue_id, places

    @property
    def host(self) -> Host:
        return self._house.queues["queue-1"]._host

    @property
    def is_there(self) -> bool:
        return self.queue_id in self._house.topology.queues

    async def says(self, link: RawLink, *attaches: pb.AttachConsumer) -> None:
        """Which consumers it still has, and that these are all."""
        number = self._house.topology.queues[self.queue_id].partition
        epoch = self.host.registry.partitions[number].epoch
        await link.send(attaches=attaches, told=[pb.Told(partition=number, epoch=epoch, used=[self.queue_id])])

    async def lose(self, origin: int) -> None:
        """The gateway has no place any more."""
        await self._places.pop(origin - ONE).stop()

    async def close(self) -> None:
        for place in self._places:
            await place.stop()


async def _used(house: House, monkeypatch: pytest.MonkeyPatch) -> Used:
    monkeypatch.setattr(untold, "_FIRST_WORDS", 0.0)
    queue_id = await house.declare("q", durable=True, auto_delete=True)
    places = []
    for origin in (ONE, OTHER):
        place = TopologyClient(house._client, f"gateway-{origin}", "gateway", f"{origin}.")
        places.append(place)
        await place.start()
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-1")
    return Used(house, queue_id, places)


async def _link(house: House, origin: int) -> RawLink:
    return await house.link(origin=origin, tells=True)


async def test_all_have_spoken(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes as soon as the last gateway has said that it has no consumer of it, and no sooner."""
    used = await _used(house, monkeypatch)
    one = await _link(house, ONE)
    await used.says(one)
    await asyncio.sleep(1.5)
    assert used.is_there
    other = await _link(house, OTHER)
    await asyncio.sleep(1.5)
    assert used.is_there
    await used.says(other)
    await one.until(lambda: not used.is_there, 10)
    await used.close()


async def test_one_still_has_a_consumer(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays for that, whoever speaks first, and goes with it."""
    used = await _used(house, monkeypatch)
    one, other = await _link(house, ONE), await _link(house, OTHER)
    await used.says(other)
    await used.says(one, pb.AttachConsumer(consumer=7, queue_id=used.queue_id, again=True))
    await asyncio.sleep(1.5)
    assert used.is_there
    await one.send(detaches=[7])
    await one.until(lambda: not used.is_there, 10)
    await used.close()


async def test_one_is_lost(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has lost its place may be cut off, and come again with its consumers: they have all the time."""
    monkeypatch.setattr(use, "_AWAITED_MS", 4000)
    used = await _used(house, monkeypatch)
    one = await _link(house, ONE)
    await used.says(one)
    await used.lose(OTHER)
    await asyncio.sleep(1.5)
    assert used.is_there
    await one.until(lambda: not used.is_there, 10)
    await used.close()
