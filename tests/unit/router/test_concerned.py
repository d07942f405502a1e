"""Who is told of a change, and waited for."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from services.common.errors import NotFound
from services.common.topology.definitions import Queue
from services.common.topology.slots import SlotName
from services.router.topology.effects import News
from services.router.watchers import Attachment, ExpectedWatcher, Watchers
from services.rpc import router_pb2
from tests.unit.router.test_service import _Silent


def _declared() -> News:
    queue = Queue(1, "/", "q", 1, durable=False, arguments=b"{}")
    return News(queues={1: queue})


def _bound() -> News:
    return News(forget={("/", "amq.direct"): {"key"}})


class _House:
    """Watchers with a gateway that keeps up, and a queue process that has acknowledged version 1."""

    def __init__(self) -> None:
        self.watchers = Watchers(10.0, lambda: 0.0)
        self.gateway, self.queue = ExpectedWatcher("g", "gateway", ""), ExpectedWatcher("q", "queue", "")
        self.gateway_stream, self.queue_stream = (self.attach(each, 1) for each in (self.gateway, self.queue))
        self.acknowledge(1)

    def attach(self, place: ExpectedWatcher, version: int) -> Attachment:
        return self.watchers.attach(place, version)

    def acknowledge(self, version: int, *, by_queue: bool = True) -> None:
        self.watchers.hear(self.gateway, self.gateway_stream, version, 0)
        if by_queue:
            self.watchers.hear(self.queue, self.queue_stream, version, 0)

    async def settled(self, version: int, asker: str = "") -> bool:
        waiting = asyncio.ensure_future(self.watchers.settled(version, asker))
        for _ in range(3):
            await asyncio.sleep(0)
        done = waiting.done()
        waiting.cancel()
        return done


async def test_a_binding_waits_for_gateways_alone() -> None:
    """A queue process keeps no routes: it is not woken, and hears of the version with its next beat."""
    house = _House()
    house.watchers.publish(2, _bound())
    assert not house.queue_stream.wake.is_set()
    assert house.queue_stream.version == 2
    assert house.gateway_stream.wake.is_set()
    assert not await house.settled(2)
    house.acknowledge(2, by_queue=False)
    assert await house.settled(2)


async def test_a_queue_waits_for_its_processes_too() -> None:
    """And what comes later does not pass it by."""
    house = _House()
    house.watchers.publish(2, _declared())
    house.watchers.publish(3, _bound())
    house.acknowledge(3, by_queue=False)
    assert house.queue_stream.news.queues
    assert not await house.settled(2)
    house.acknowledge(2)
    assert await house.settled(3)


async def test_a_queue_process_that_comes_back_is_waited_for() -> None:
    """Whatever it acknowledged, to this router or the one before: it is told all anew."""
    house = _House()
    house.acknowledge(7)
    house.queue_stream = house.attach(house.queue, 9)
    house.acknowledge(9, by_queue=False)
    assert not await house.settled(9)
    house.acknowledge(9)
    assert await house.settled(9)


async def test_what_was_undone_is_waited_for() -> None:
    """When everybody has to come back, what a queue process has acknowledged counts for nothing."""
    house = _House()
    house.watchers.close()
    house.acknowledge(2, by_queue=False)
    assert house.queue.needs == math.inf
    assert not await house.settled(2)


async def test_who_asks_waits_by_itself() -> None:
    """Its acknowledgement is waited for by what others ask, and theirs by what it asks."""
    house = _House()
    other = ExpectedWatcher("other", "gateway", "")
    stream = house.attach(other, 1)
    house.watchers.publish(2, _bound())
    asked = [asyncio.ensure_future(house.watchers.settled(2, asker)) for asker in ("g", "other", "")]
    await asyncio.sleep(0)
    house.watchers.hear(other, stream, 2, 0)
    await asked[0]
    assert not await house.settled(2, "other")
    assert not asked[2].done()
    house.acknowledge(2)
    await asyncio.gather(*asked)


async def test_who_asks_routes_by_the_answer(cluster: Any, until: Any) -> None:
    """Though its news may come after the answer: a change returns when they are there."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    hear, held = client._hear, list[router_pb2.TopologyFrame]()
    client._hear = held.append
    change = asyncio.ensure_future(client.change(cluster.request("declare_queue", name="q")))
    await until(lambda: any(frame.queues for frame in held))
    assert not (await asyncio.wait({change}, timeout=0.2))[0]
    client._hear = hear
    for frame in held:
        hear(frame)
    await change
    assert SlotName("/", "q") in client.by_name


async def test_who_leaves_waits_for_no_news(cluster: Any, until: Any) -> None:
    """None come any more: what it asked for is done as soon as it is answered."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    held = list[router_pb2.TopologyFrame]()
    client._hear = held.append
    change = asyncio.ensure_future(client.change(cluster.request("declare_queue", name="q")))
    await until(lambda: client._for_newer)
    await client.stop()
    assert (await asyncio.wait_for(change, 10)).created


async def test_a_silent_queue_process_holds_up_no_binding(cluster: Any, until: Any) -> None:
    """By the wire: a binding is answered though a queue process says nothing; a queue is not."""
    await cluster.start_router()
    client, silent = await cluster.watch("g1"), _Silent(cluster, "q1", role="queue")
    await silent.attach()
    await client.change(cluster.request("declare_exchange", name="there", type="direct"))
    bind = {"source": "there", "destination": "amq.direct", "to_exchange": True}
    await client.change(cluster.request("bind", **bind))
    declared = asyncio.ensure_future(client.change(cluster.request("declare_queue", name="q")))
    frame = await silent.call.read()
    assert [queue.name for queue in frame.queues] == ["q"]
    assert not declared.done()
    await silent.acknowledge(frame.version)
    await declared
    await silent.channel.close()


async def test_nobody_waits_for_who_alone_has_asked() -> None:
    """It is told so with the news; what others have asked too, or ask about later, it has to acknowledge."""
    house = _House()
    other = house.attach(ExpectedWatcher("other", "gateway", ""), 1)
    house.watchers.publish(2, _bound(), {"g"})
    assert (house.gateway_stream.awaited, other.awaited) == (0, 2)
    house.watchers.publish(3, _bound(), {"g", "other"})
    assert (house.gateway_stream.awaited, other.awaited) == (3, 3)
    house.watchers.publish(4, _bound(), {"g"})
    house.gateway_stream.wake.clear()
    assert not await house.settled(4, "g")
    assert not house.gateway_stream.wake.is_set()
    assert not await house.settled(4, "other")
    assert house.gateway_stream.wake.is_set()
    assert house.gateway_stream.awaited == 4


async def test_a_change_that_was_made_before(cluster: Any) -> None:
    """By the wire: who made it had nothing to acknowledge; for who asks for the same again, it is asked to."""
    await cluster.start_router()
    first, second = await cluster.watch("g1"), await cluster.watch("g2")
    told = list[bool]()
    hear = first._hear

    def noted(frame: router_pb2.TopologyFrame) -> None:
        told.append(frame.nobody_waits)
        hear(frame)

    first._hear = noted
    declare = cluster.request("declare_exchange", name="there", type="direct")
    await first.change(declare)
    assert told
    assert all(told)
    await second.change(declare)
    assert not all(told)
    assert first._acknowledged == first.version


async def test_who_is_refused_hears_that_last(cluster: Any, until: Any) -> None:
    """That there is no such queue is true at every gateway then."""
    await cluster.start_router()
    first, second = await cluster.watch("g1"), await cluster.watch("g2")
    await first.change(cluster.request("declare_queue", name="q"))
    hear, held = second._hear, list[router_pb2.TopologyFrame]()
    second._hear = held.append
    asked = {asyncio.ensure_future(first.change(cluster.request("delete_queue", name="q")))}
    await until(lambda: SlotName("/", "q") not in first.by_name)
    look = asyncio.ensure_future(first.change(cluster.request("declare_queue", name="q", passive=True)))
    assert not (await asyncio.wait({*asked, look}, timeout=0.2))[0]
    second._hear = hear
    for frame in held:
        hear(frame)
    with pytest.raises(NotFound):
        await look
    await asyncio.gather(*asked)
