"""Streams that end while leases may have run out: what clients were done with is settled, later."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.queue.host import Host
from services.queue.links import requests
from services.queue.links.link import PeerLink
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink

ORIGIN = 1001


@pytest.fixture
def host(house: House) -> Host:
    return house.queues["queue-1"]._host


@pytest.fixture
async def gateway(house: House) -> RawLink:
    """Whose stream will end."""
    return await house.link(origin=ORIGIN, tells=True)


@pytest.fixture
async def other(house: House) -> RawLink:
    return await house.link(origin=1002)


class Uncertain:
    """Leases may have run out, until `over`."""

    def __init__(self, host: Host) -> None:
        self._host, self._hold = host, host.leases_hold
        host.leases_hold = bool

    def over(self) -> None:
        self._host.leases_hold = self._hold
        self._host.resume(valid=True)


def link_of(host: Host) -> PeerLink:
    [its] = [each for each in host.links if each.origin == ORIGIN]
    return its


async def holding(gateway: RawLink, queue_id: int, *bodies: bytes, credit: int = 10) -> None:
    """Its first consumer has as many of these as its credit lets it."""
    await gateway.attach(queue_id, messages=credit)
    await gateway.publish(queue_id, list(bodies), persistent=True)
    await gateway.until(lambda: len(gateway.uids) == min(credit, len(bodies)))


async def says_and_leaves(gateway: RawLink, its: PeerLink, settles: list[pb.Settle]) -> None:
    for settle in settles:
        await gateway.send(settles=[settle])
    await gateway.until(lambda: len(its._suspended) == len(settles))
    await gateway.close()
    async with asyncio.timeout(10):
        while not its.broken:
            await asyncio.sleep(0.01)


async def test_what_clients_were_done_with(house: House, host: Host, gateway: RawLink, other: RawLink) -> None:
    """It is settled; what they gave back in it comes back by the end of the stream. No frame is kept."""
    queue_id = await house.declare("q", durable=True)
    await holding(gateway, queue_id, b"1", b"2", b"3")
    its, uncertain = link_of(host), Uncertain(host)
    outcomes = zip((pb.ACCEPT, pb.REJECT, pb.RELEASE), gateway.uids, strict=True)
    said = [pb.Settle(queue_id=queue_id, outcome=outcome, uids=[uid]) for outcome, uid in outcomes]
    await says_and_leaves(gateway, its, said)
    assert its._suspended == []
    uncertain.over()
    await other.attach(queue_id)
    await other.until(lambda: other.bodies)
    assert other.bodies == [b"3"]
    assert set(host.registry.queues[queue_id].unsettled) == set(other.uids)


async def test_of_a_group(house: House, host: Host, gateway: RawLink, other: RawLink) -> None:
    """What becomes free by it goes to a consumer that is there, not to one of the same stream, where it was lost."""
    table = {"qpid.group_header_key": "g", "qpid.shared_msg_group": 1, "x-delivery-limit": 0}
    queue_id = await house.declare("q", durable=True, table=table)
    await holding(gateway, queue_id, b"1", b"2", credit=1)
    await gateway.attach(queue_id, 2)
    await other.attach(queue_id)
    its, uncertain = link_of(host), Uncertain(host)
    await says_and_leaves(gateway, its, [pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=gateway.uids)])
    uncertain.over()
    await other.until(lambda: other.bodies)
    assert (other.bodies, other.runs[0].redelivered) == ([b"2"], False)


async def test_while_it_is_handed_over(house: House, host: Host, gateway: RawLink) -> None:
    """The next owner is given what is left: the partition is not written down before it is heard."""
    queue_id = await house.declare("q", durable=True)
    await holding(gateway, queue_id, b"1", b"2")
    partition, its, uncertain = host.registry.partition_of(queue_id), link_of(host), Uncertain(host)
    assert partition
    moving = asyncio.ensure_future(house.queues["queue-1"]._partitions._hand_over([partition], 5))
    await says_and_leaves(gateway, its, [pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=gateway.uids)])
    await asyncio.sleep(1.2)  # longer than what is on its way is waited for
    assert not moving.done()
    uncertain.over()
    assert await moving == [partition.number]
    assert not partition.queues[queue_id].unsettled


async def test_behind_one_that_fails(
    house: House, host: Host, gateway: RawLink, other: RawLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame that cannot be carried out ends the stream; what was said behind it counts all the same."""
    queue_id = await house.declare("q", durable=True)
    await holding(gateway, queue_id, b"1", b"2")
    its, uncertain = link_of(host), Uncertain(host)
    await gateway.send(requests=[pb.QueueRequest(id=1, inspect=pb.InspectRequest(queue_id=queue_id))])
    await gateway.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=gateway.uids)])
    await gateway.until(lambda: len(its._suspended) == 2)

    def fails(*_: Any) -> None:
        raise ValueError("a fault in a frame")

    monkeypatch.setattr(requests, "answer_all", fails)
    uncertain.over()
    await other.until(lambda: its.broken)
    monkeypatch.undo()
    assert not host.registry.queues[queue_id].unsettled


async def test_behind_much_else(house: House, host: Host, gateway: RawLink, monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait for their turn, and a partition that leaves waits for them: the next owner is given what is left."""
    queue_id = await house.declare("q", durable=True)
    await holding(gateway, queue_id, b"1", b"2")
    partition, its, uncertain, turns = host.registry.partition_of(queue_id), link_of(host), Uncertain(host), []
    assert partition
    await says_and_leaves(gateway, its, [pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=gateway.uids)])
    their_turn = asyncio.Event()
    monkeypatch.setattr(host.turns, "until_certain", their_turn.wait)
    host.turns.later(1, lambda: turns.append(1))
    moving = asyncio.ensure_future(house.queues["queue-1"]._partitions._hand_over([partition], 5))
    uncertain.over()
    await asyncio.sleep(1.2)  # longer than what is on its way is waited for
    assert (moving.done(), turns) == (False, [])
    their_turn.set()
    assert await moving == [partition.number]
    assert (turns, dict(partition.queues[queue_id].unsettled)) == ([1], {})


async def test_transactions_are_over_behind_them(
    house: House, host: Host, gateway: RawLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is asked about a prepared one, which decides it, when all that the stream has said is done."""
    queue_id = await house.declare("q", durable=True)
    await holding(gateway, queue_id, b"1", b"2")
    its, uncertain, order = link_of(host), Uncertain(host), list[str]()
    settle, close = its.settle, its._transactions.close
    monkeypatch.setattr(its, "settle", lambda said, now: (order.append("said"), settle(said, now)))
    monkeypatch.setattr(its._transactions, "close", lambda: (order.append("over"), close()))
    host.turns.later(1, lambda: None)
    await says_and_leaves(gateway, its, [pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=gateway.uids)])
    uncertain.over()
    await gateway.until(lambda: "over" in order)
    assert order == ["said", "over"]
