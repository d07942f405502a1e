"""Settlements that wait: for a claim of what they give back, for a deletion, for their partition."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.common.errors import Unavailable
from services.common.topology.slots import SlotId
from services.queue.links.in_turns import InTurns
from services.queue.links.outbox import Outbox
from services.queue.machine import turn
from services.queue.machine.queue import Queue
from services.queue.machine.settlement import EntrySettlement
from services.queue.partitions.partition import PartitionState
from services.rpc import queue_pb2 as pb
from tests.support.many_claims import BODIES, FEW, MANY, held_before, holder, in_steps, stream_of, taker, waiting
from tests.support.queue_house import House, RawLink


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return in_steps(monkeypatch)


@pytest.fixture
def turns(steps: list[int], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many are settled in each turn."""
    done, some, settle = list[int](), InTurns._some, EntrySettlement.settle

    def one_turn(self: InTurns) -> None:
        done.append(0)
        some(self)

    def settles(self: EntrySettlement, outcome: Any, uids: Any, now: int, *change: Any) -> str:
        done[-1] += len(uids)
        return settle(self, outcome, uids, now, *change)

    monkeypatch.setattr(InTurns, "_some", one_turn)
    monkeypatch.setattr(EntrySettlement, "settle", settles)
    return done


@pytest.fixture
def receipts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The frames that were."""
    told, settled = list[int](), Outbox.settled
    monkeypatch.setattr(Outbox, "settled", lambda its, number: (told.append(number), settled(its, number)))
    return told


def tried(queue_id: int, uids: list[int]) -> pb.Settle:
    return pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=uids, again=True)


async def knows(link: RawLink) -> None:
    """It says that it has heard which batches are done: no receipt waits for that."""
    await link.send(heard=sum(1 for frame in link.frames if frame.done))


def queue_of(house: House, queue_id: int) -> Queue:
    registry = house.queues["queue-1"]._host.registry
    partition = registry.partition_of(SlotId(queue_id))
    assert partition
    return partition.queues[SlotId(queue_id)]


# -------------------------------------------------------------- behind a claim of much


async def test_much_is_given_back(house: House, turns: list[int]) -> None:
    """In parts, with the claim or for several: nothing is delivered before all of it has its place again."""
    queue_id, link, uids = await waiting(house)
    other = await house.link(origin=1001)
    await other.send(attaches=[holder(queue_id, uids[40:-1], stray=True)], settles=[tried(queue_id, uids[40:-1])])
    settles = [tried(queue_id, uids[20:40]), tried(queue_id, uids[:20])]
    await link.send(attaches=[holder(queue_id, uids[:40], stray=True), taker(queue_id)], settles=settles)
    await link.until(lambda: len(link.bodies) == MANY, 8)
    assert link.bodies == BODIES
    assert (max(turns), sum(turns)) == (FEW, MANY - 1)


async def test_more_is_claimed_in_between(house: House, turns: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """That is found, and given back, before the queue goes on."""
    queue_id, link, uids = await waiting(house)
    other, host, settle = await house.link(origin=1001), house.queues["queue-1"]._host, Queue.settle
    await other.until(lambda: any(each.origin == 1001 for each in host.links))
    more = pb.LinkFrame(attaches=[holder(queue_id, uids[50:-1], stray=True)], settles=[tried(queue_id, uids[50:-1])])

    def claims(self: Queue, *said: Any) -> None:
        settle(self, *said)
        if sum(turns) == 2 * FEW:
            stream_of(host, 1001).receive(more, ())

    monkeypatch.setattr(Queue, "settle", claims)
    attaches = [holder(queue_id, uids[:50], stray=True), taker(queue_id)]
    await link.send(attaches=attaches, settles=[tried(queue_id, uids[:50])])
    await link.until(lambda: len(link.bodies) == MANY, 8)
    assert link.bodies == BODIES
    assert (max(turns), sum(turns)) == (FEW, MANY - 1)
    assert not host.claims


# -------------------------------------------------------------- behind a deletion


class Router:
    """Asked to delete a queue, it is not reached, once that is `over`."""

    def __init__(self) -> None:
        self.asked, self.over = asyncio.Event(), asyncio.Event()

    async def change(self, _request: object) -> None:
        self.asked.set()
        await self.over.wait()
        raise Unavailable("no router")


async def deleting(house: House, queue_id: int, monkeypatch: pytest.MonkeyPatch, **conditions: bool) -> Router:
    """Somebody has asked for it, and the router has not answered."""
    router, link = Router(), await house.link(origin=1009)
    monkeypatch.setattr(house.queues["queue-1"]._host.topology, "change", router.change)
    await link.send(requests=[pb.QueueRequest(id=1, delete=pb.DeleteRequest(queue_id=queue_id, **conditions))])
    await router.asked.wait()
    return router


async def claiming(house: House, link: RawLink, queue_id: int, uids: list[int]) -> None:
    """Claims and gives back, and returns when that waits."""
    await link.send(attaches=[holder(queue_id, uids, stray=True)], settles=[tried(queue_id, uids)])
    registry, wanted = house.queues["queue-1"]._host.registry, SlotId(queue_id)

    def waits() -> object:
        awaited = registry.awaited(wanted) or registry.deleting.awaited(wanted)
        return awaited and awaited.claiming

    await link.until(waits, 8)


async def test_a_queue_that_stays(house: House, monkeypatch: pytest.MonkeyPatch, receipts: list[int]) -> None:
    """What a gateway gave back while it was to be deleted is others', at its place; only then it hears of it."""
    queue_id, link, uids = await waiting(house)
    await knows(link)
    router = await deleting(house, queue_id, monkeypatch)
    await claiming(house, link, queue_id, uids[:2])
    assert not receipts
    router.over.set()
    other = await house.link(origin=1001)
    await other.attach(queue_id)
    await other.until(lambda: other.bodies == BODIES, 8)
    await link.until(lambda: receipts == [1], 8)


async def test_an_empty_queue_that_stays(house: House, monkeypatch: pytest.MonkeyPatch, receipts: list[int]) -> None:
    """The same of one that was to be deleted since nothing waited in it."""
    queue_id, former = await held_before(house)
    router = await deleting(house, queue_id, monkeypatch, if_empty=True)
    link, other = await house.link(), await house.link(origin=1001)
    await claiming(house, link, queue_id, former.uids)
    assert not receipts
    router.over.set()
    await other.attach(queue_id)
    await other.until(lambda: other.bodies == BODIES, 8)
    await link.until(lambda: receipts == [1], 8)


async def test_its_stream_is_another_by_then(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway says it again on that one: what the former one said does not give it to a consumer before that."""
    queue_id, link, uids = await waiting(house)
    host = house.queues["queue-1"]._host
    router = await deleting(house, queue_id, monkeypatch)
    await claiming(house, link, queue_id, uids[:1])
    former = stream_of(host, 1000)
    again = await house.link()
    await again.until(lambda: former.broken, 8)
    await again.send(attaches=[taker(queue_id)])
    await claiming(house, again, queue_id, uids[:1])
    await again.until(lambda: stream_of(host, 1000).awaiting.of(7), 8)
    router.over.set()
    await again.until(lambda: len(again.uids) >= MANY, 8)
    assert again.uids == uids


async def test_its_partition_leaves(house: House) -> None:
    """What is given back then is given back at once, for the next owner: the claim is refused."""
    queue_id, former = await held_before(house)
    registry, queue = house.queues["queue-1"]._host.registry, queue_of(house, queue_id)
    partition = registry.partition_of(SlotId(queue_id))
    assert partition
    registry.suspend(partition)
    link = await house.link()
    await claiming(house, link, queue_id, former.uids)
    assert (len(queue.unsettled), partition.waiting) == (0, [])


# -------------------------------------------------------------- receipts


async def test_a_receipt_for_what_is_claimed_first(
    house: House, turns: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes when all of it has its place again."""
    back = list[int]()
    monkeypatch.setattr(Outbox, "settled", lambda its, number: back.append(sum(turns)))
    queue_id, link, uids = await waiting(house)
    await knows(link)
    await link.send(attaches=[holder(queue_id, uids[:-1], stray=True)], settles=[tried(queue_id, uids[:-1])])
    await link.until(lambda: back, 8)
    assert back == [MANY - 1]


async def test_a_receipt_for_what_waits_for_a_partition(
    house: House, receipts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes when that is served, and all parts of it are settled; that of a later frame may come before."""
    monkeypatch.setattr(turn, "AT_ONCE", FEW)
    queue_id, link = await house.declare("q"), await house.link()
    other_id, host = await house.declare("other"), house.queues["queue-1"]._host
    partition, queue = host.registry.partition_of(SlotId(queue_id)), queue_of(house, queue_id)
    assert partition
    await link.attach(queue_id)
    await link.publish(queue_id, BODIES)
    await link.until(lambda: len(link.uids) == MANY)
    await knows(link)
    del host.registry.queues[SlotId(queue_id)]
    partition.state = PartitionState.RECOVERING
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids)])
    await link.send(settles=[pb.Settle(queue_id=other_id, outcome=pb.ACCEPT, uids=[1])])
    await link.until(lambda: receipts == [2], 8)
    partition.state, host.registry.queues[SlotId(queue_id)] = PartitionState.SERVING, queue
    partition.replay()
    assert (receipts, bool(queue.unsettled)) == ([2], True)
    await link.until(lambda: receipts == [2, 1], 8)
    assert not queue.unsettled
