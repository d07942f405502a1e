"""Queues that are deleted when unused, while the router that is to delete them is away."""

from __future__ import annotations

import asyncio

import pytest

from services.common.errors import Unavailable
from services.queue import host as hosts
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink


class Router:
    """Away, until a test says that it is there again."""

    def __init__(self, house: House, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(hosts, "_RETRY_SECONDS", 0.3)
        self._topology = house.queues["queue-1"]._host.topology
        self._works, self.tried, self.away, self.tries = self._topology.change, asyncio.Event(), True, 0
        monkeypatch.setattr(self._topology, "change", self._change)

    async def _change(self, request: object) -> object:
        self.tries += 1
        self.tried.set()
        if self.away:
            raise Unavailable("no router has answered")
        return await self._works(request)  # type: ignore[arg-type]


async def _gone(house: House, queue_id: int) -> None:
    async with asyncio.timeout(60):
        while queue_id in house.topology.queues:
            await asyncio.sleep(0.005)


async def _left(house: House, link: RawLink, router: Router) -> int:
    """An auto-delete queue whose last consumer has left."""
    queue_id = await house.declare("q", durable=True, auto_delete=True)
    await link.attach(queue_id, 1)
    await link.send(detaches=[1])
    await router.tried.wait()
    return queue_id


async def test_a_consumer_comes(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """An auto-delete queue that could not be deleted stays for a new consumer, and is deleted when that leaves."""
    router, link = Router(house, monkeypatch), await house.link()
    queue_id = await _left(house, link, router)
    assert (await link.attach(queue_id, 2, messages=0)).reason == pb.NONE
    router.away = False
    await link.publish(queue_id, [b"1"], persistent=True)
    await asyncio.sleep(0.6)
    assert not any(frame.cancelled for frame in link.frames)
    assert await link.ready(queue_id, 1) == 1
    await link.send(detaches=[2])
    await _gone(house, queue_id)


async def test_a_consumer_comes_and_goes(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is deleted once, by the process that found it unused last."""
    router, link = Router(house, monkeypatch), await house.link()
    queue_id = await _left(house, link, router)
    await link.attach(queue_id, 2)
    router.away = False
    await link.send(detaches=[2])
    await _gone(house, queue_id)
    await asyncio.sleep(0.6)
    assert router.tries == 2


async def test_no_consumer_comes(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is deleted when there is a router again."""
    router, link = Router(house, monkeypatch), await house.link()
    queue_id = await _left(house, link, router)
    router.away = False
    await _gone(house, queue_id)


async def test_a_client_looks(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """x-expires begins anew for a queue that could not be deleted, as for others."""
    router, link = Router(house, monkeypatch), await house.link()
    queue_id = await house.declare("q", expires=700)
    queue = house.queues["queue-1"]._host.registry.queues[queue_id]
    await router.tried.wait()
    began = queue.use.deadlines()
    await link.ready(queue_id, 1)
    assert queue.use.deadlines() > began
    router.away = False
    await asyncio.sleep(0.5)
    assert queue_id in house.topology.queues
    await _gone(house, queue_id)
