"""Streams that end with frames that wait behind others: what is said in them counts, and who decides waits for it."""

from __future__ import annotations

import asyncio

import pytest

from services.common.topology.slots import SlotId
from services.queue.host import Host
from services.queue.links import link as link_module
from services.queue.links.link import PeerLink
from services.queue.machine import turn
from services.rpc import queue_pb2 as pb
from tests.support.many_claims import BODIES, FEW, MANY, holder, in_steps, stream_of
from tests.support.queue_house import House, RawLink

ORIGIN = 1002


@pytest.fixture
def host(house: House) -> Host:
    return house.queues["queue-1"]._host


async def holding(house: House, host: Host, **more: object) -> tuple[int, RawLink, PeerLink]:
    """A gateway that comes again if it can has all messages of a queue."""
    queue_id = await house.declare("q", durable=True, **more)
    gateway = await house.link(origin=ORIGIN, tells=True)
    await gateway.attach(queue_id)
    await gateway.publish(queue_id, BODIES, persistent=True)
    await gateway.until(lambda: len(gateway.uids) == MANY)
    return queue_id, gateway, stream_of(host, ORIGIN)


async def leave(gateway: RawLink, its: PeerLink) -> None:
    await gateway.close()
    await gateway.until(lambda: its.broken)


async def test_a_former_stream_of_its_gateway(house: House, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it had is not given up, nor counts as tried, before the later one is heard: it may be done with."""
    monkeypatch.setattr(link_module, "_RETURN_SECONDS", 0.1)
    parked = await house.declare("parked")
    letters = {"dead_letter_exchange": "", "dead_letter_routing_key": "parked"}
    queue_id, gateway, former = await holding(house, host, delivery_limit=0, **letters)
    in_steps(monkeypatch)
    their_turn = asyncio.Event()
    monkeypatch.setattr(host.turns, "until_certain", their_turn.wait)
    await leave(gateway, former)
    again = await house.link(origin=ORIGIN, tells=True)
    await again.until(lambda: any(link.origin == ORIGIN for link in host.links))
    later = stream_of(host, ORIGIN)
    await again.send(attaches=[holder(queue_id, gateway.uids)])
    await again.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=gateway.uids)])
    await again.until(lambda: host.late.has_one_of(ORIGIN))
    await leave(again, later)
    await asyncio.sleep(0.5)
    assert not former.over
    their_turn.set()
    await again.until(lambda: former.over and later.over)
    queue = host.registry.queues[SlotId(queue_id)]
    assert (queue.ready_count, dict(queue.unsettled)) == (0, {})
    assert host.registry.queues[SlotId(parked)].ready_count == 0
    assert not host.late.has_one_of(ORIGIN)


async def test_a_hand_over_waits_for_one_that_has_left(
    house: House, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next owner is given what is left when its frames are heard."""
    queue_id, gateway, its = await holding(house, host)
    monkeypatch.setattr(turn, "AT_ONCE", FEW)
    heard = asyncio.Event()

    async def until_done(_: PeerLink) -> None:
        await heard.wait()

    monkeypatch.setattr(host.claims, "until_done", until_done)
    await gateway.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=gateway.uids)])
    await gateway.until(lambda: host.late.has_one_of(ORIGIN))
    partition = host.registry.partition_of(SlotId(queue_id))
    assert partition
    moving = asyncio.ensure_future(house.queues["queue-1"]._partitions._hand_over([partition], 5))
    await leave(gateway, its)
    await asyncio.sleep(1.2)  # longer than what is on its way is waited for
    assert not moving.done()
    heard.set()
    assert await moving == [partition.number]
    assert not partition.queues[SlotId(queue_id)].unsettled


async def test_a_hand_over_waits_for_no_claims(house: House, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """What others claim of other queues does not hold it up."""
    queue_id = await house.declare("q", durable=True)
    partition = host.registry.partition_of(SlotId(queue_id))
    assert partition
    their_turn = asyncio.Event()
    monkeypatch.setattr(host.turns, "until_certain", their_turn.wait)
    host.turns.later(1, lambda: None)
    moving = house.queues["queue-1"]._partitions._hand_over([partition], 50)
    async with asyncio.timeout(20):
        assert await moving == [partition.number]
    their_turn.set()
