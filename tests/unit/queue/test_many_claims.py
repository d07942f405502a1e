"""Clients hold more of a queue than is claimed in one turn of the event loop, when it comes to another owner."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.topology.slots import SlotId
from services.queue.links import link as link_module
from services.queue.machine.claims import Claims
from services.queue.partitions.partition import PartitionState
from services.rpc import queue_pb2 as pb
from tests.support.many_claims import BODIES, FEW, MANY, Between, held_before, holder, in_steps, taker, waiting
from tests.support.queue_house import House


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return in_steps(monkeypatch)


@pytest.mark.parametrize("stray", [False, True])
async def test_what_a_former_owner_had_given_them(house: House, steps: list[int], stray: bool) -> None:
    """It is theirs, claimed in parts: given back, it comes again in its order, before what is behind it."""
    queue_id, former = await held_before(house, durable=True)
    link = await house.link()
    await link.send(attaches=[holder(queue_id, former.uids, stray=stray), taker(queue_id)])
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=former.uids)])
    await link.send(publishes=[link.batch(queue_id, [b"behind"], uids=[(1000 << 39) + 1000])])
    await link.until(lambda: len(link.bodies) == MANY + 1, 8)
    assert link.bodies == [*BODIES, b"behind"]
    assert (max(steps) <= FEW, sum(steps)) == (True, MANY)


@pytest.mark.parametrize("table", [{}, {"max_priority": 3}, {"table": {"qpid.queue_sort_key": "k"}}])
async def test_what_stands_in_the_list(house: House, steps: list[int], table: dict[str, Any]) -> None:
    """It is found in parts: nobody else gets it, and they get the others, in order."""
    queue_id, link, uids = await waiting(house, **table)
    await link.send(attaches=[holder(queue_id, uids[::2]), taker(queue_id)])
    await link.until(lambda: len(link.bodies) == MANY // 2, 8)
    assert link.uids == uids[1::2]
    assert max(steps) <= FEW
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=uids[::2])])
    await link.until(lambda: len(link.bodies) == MANY, 8)
    assert link.uids[MANY // 2 :] == uids[::2]


async def test_settled_at_once(house: House, steps: list[int]) -> None:
    """What they are done with right behind that is done with."""
    queue_id, link, uids = await waiting(house, durable=True)
    await link.send(attaches=[holder(queue_id, uids[:-1]), taker(queue_id)])
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=uids[:-1])])
    await link.until(lambda: link.bodies, 8)
    assert link.uids == uids[-1:]
    assert await link.ready(queue_id, 1) == 0
    assert list(house.queues["queue-1"]._host.registry.queues[queue_id].unsettled) == uids[-1:]
    assert max(steps) <= FEW


@pytest.mark.parametrize("count", [FEW // 2, MANY - 2], ids=["few", "many"])
async def test_given_back_with_the_claim(house: House, steps: list[int], count: int) -> None:
    """What they give back in the frame that claims it is anybody's once that is found, at its place."""
    queue_id, link, uids = await waiting(house)
    other = await house.link(origin=1001)
    back = pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=uids[:count], again=True)
    await link.send(attaches=[holder(queue_id, uids[:-2], stray=True)], settles=[back])
    await link.until(lambda: any(frame.attached for frame in link.frames), 8)
    await other.attach(queue_id)
    await other.until(lambda: len(other.uids) == count + 2, 8)
    assert other.uids == uids[:count] + uids[-2:]
    assert max(steps) <= FEW


async def test_given_back_and_handed_over(house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the queue leaves before that is found, its gateway hears that it has to say so to the next owner."""
    queue_id, link, uids = await waiting(house)
    registry = house.queues["queue-1"]._host.registry
    partition = registry.partitions[registry.definitions[SlotId(queue_id)].partition]

    def leaves() -> None:
        registry.suspend(partition)
        partition.state = PartitionState.WRITTEN

    Between(monkeypatch, steps, leaves)
    back = pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=uids[:3], again=True)
    await link.send(attaches=[holder(queue_id, uids[:-2], stray=True)], settles=[back])
    await link.until(lambda: any(frame.unsettled for frame in link.frames), 8)
    assert [said for frame in link.frames for said in frame.unsettled] == [back]


async def test_what_comes_meanwhile(house: House, steps: list[int]) -> None:
    """What its publisher sends again is known by the claims; others are given it once all is claimed, in order."""
    queue_id, link, uids = await waiting(house)
    coming = [uids[-1] + 1, uids[-1] + 2]
    other = await house.link(origin=1001)
    await link.send(attaches=[holder(queue_id, [*uids[1:], coming[0]])])
    await link.until(lambda: any(frame.attached for frame in link.frames), 8)
    await other.send(attaches=[taker(queue_id)])
    await other.send(publishes=[other.batch(queue_id, [b"x", b"y"], uids=coming)])
    await other.until(lambda: len(other.uids) == 2, 8)
    assert other.uids == [uids[0], coming[1]]


async def test_its_stream_ends_in_between(house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Others get all of it, once, at its places, and what comes after it behind."""
    monkeypatch.setattr(link_module, "_RETURN_SECONDS", 0)
    queue_id, former = await held_before(house)
    host, expect = house.queues["queue-1"]._host, Claims.expect
    link = await house.link()

    def ends(self: Claims, *said: Any) -> None:
        expect(self, *said)
        if len(steps) == 2:
            next(each for each in host.links if each.origin == 1000).close()

    monkeypatch.setattr(Claims, "expect", ends)
    await link.send(attaches=[holder(queue_id, former.uids)])
    other = await house.link(origin=1001)
    await other.attach(queue_id)
    await other.until(lambda: len(other.bodies) == MANY, 8)
    assert sorted(other.uids) == former.uids
    await other.publish(queue_id, [b"behind"])
    await other.until(lambda: len(other.bodies) == MANY + 1, 8)
    assert not host.claims._queues


async def test_the_queue_goes_in_between(house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is claimed any more, and its gateway's frames are carried out."""
    queue_id, link, uids = await waiting(house)
    host, expect = house.queues["queue-1"]._host, Claims.expect

    def goes(self: Claims, *said: Any) -> None:
        if len(steps) == 1:
            host.registry.delete(host.registry.definitions[queue_id])
        expect(self, *said)

    monkeypatch.setattr(Claims, "expect", goes)
    await link.send(attaches=[holder(queue_id, uids)])
    other = await house.declare("other")
    await link.publish(other, [b"served"])
    await link.attach(other, 8)
    await link.until(lambda: link.bodies, 8)
    assert (link.bodies, len(steps)) == ([b"served"], 2)
    assert not host.claims._queues
