"""What comes back to a process whose leases may have run out meanwhile waits until that is known."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from services.queue.links import transactions
from services.queue.links.transactions import Transactions
from services.rpc import queue_pb2 as pb
from services.rpc import store_pb2
from tests.support.queue_house import House, RawLink

PREPARE, COMPLETE, ABORT = pb.TransactionStep.PREPARE, pb.TransactionStep.COMPLETE, pb.TransactionStep.ABORT


async def test_an_outcome(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction whose gateway is gone, and that the store has committed, delivers nothing until then."""
    queue_id = await house.declare("q")
    one, other = await house.link(origin=1001), await house.link(origin=1002)
    await other.attach(queue_id)
    raw = one.batch(queue_id, [b"1"], transaction=7)
    await one.send(publishes=[raw], transactions=[pb.TransactionStep(transaction=7, step=PREPARE)])
    await one.until(lambda: any(frame.prepared for frame in one.frames))
    host = house.queues["queue-1"]._host
    asked, answer = asyncio.Event(), asyncio.Event()

    async def resolve(_number: int) -> store_pb2.TransactionOutcome:
        asked.set()
        await answer.wait()
        return store_pb2.TransactionOutcome(committed=True)

    monkeypatch.setattr(host.store, "resolve_transaction", resolve)
    await one.close()
    await asked.wait()
    monkeypatch.setattr(host, "leases_hold", lambda: False)
    answer.set()
    await asyncio.sleep(0.1)
    assert not other.bodies
    monkeypatch.setattr(host, "leases_hold", lambda: True)
    host.resume(valid=True)
    await other.until(lambda: other.bodies)


async def test_a_route_of_a_dead_letter(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead letter whose route was asked for is not sent until it is certain that no other process sends it."""
    await house.start_queue("queue-2")
    host, other = (house.queues[name]._host for name in ("queue-1", "queue-2"))
    names = (f"q{number}" for number in itertools.count())
    while (target := await house.declare(name := next(names))) not in other.registry.queues:
        pass
    letters = {"dead_letter_exchange": "", "dead_letter_routing_key": name}
    while (source := await house.declare(next(names), **letters)) not in host.registry.queues:
        pass
    link = await house.link()
    asked, answer = asyncio.Event(), asyncio.Event()
    route = host.topology.route

    async def slow(messages: list[object]) -> object:
        asked.set()
        await answer.wait()
        return await route(messages)

    monkeypatch.setattr(host.topology, "route", slow)
    await link.publish(source, [b"1"])
    await link.attach(source)
    await link.until(lambda: link.bodies)
    await link.send(settles=[pb.Settle(queue_id=source, outcome=pb.REJECT, uids=link.uids)])
    await asked.wait()
    monkeypatch.setattr(host, "leases_hold", lambda: False)
    answer.set()
    await asyncio.sleep(0.2)
    assert not other.registry.queues[target].ready_count
    monkeypatch.setattr(host, "leases_hold", lambda: True)
    host.resume(valid=True)
    async with asyncio.timeout(60):
        while not other.registry.queues[target].ready_count:
            await asyncio.sleep(0.005)


async def test_a_queue_that_lost_its_purpose(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not deleted while it may be another process's, which has other consumers of it."""
    queue_id = await house.declare("q", auto_delete=True)
    link = await house.link()
    await link.attach(queue_id)
    host = house.queues["queue-1"]._host
    monkeypatch.setattr(host, "leases_hold", lambda: False)
    host.delete_soon(queue_id)
    await asyncio.sleep(0.2)
    assert queue_id in house.topology.queues
    monkeypatch.setattr(host, "leases_hold", lambda: True)
    async with asyncio.timeout(60):
        while queue_id in house.topology.queues:
            await asyncio.sleep(0.005)


async def test_what_gateways_held_of_a_former_owner(house: House) -> None:
    """The time in which they say so begins anew when they can be heard again, however long the machine slept."""
    host = house.queues["queue-1"]._host
    partition = host.registry.partitions[0]
    host.resume(valid=False)
    partition.claimable_until = 1
    async with asyncio.timeout(60):
        while host.suspended:
            await asyncio.sleep(0.005)
    assert partition.claimable_until > host.now()
    assert not host.registry.partitions[1].claimable_until


async def prepared(house: House, link: RawLink, queue_id: int, number: int, **run: bool) -> Transactions:
    """A transaction is prepared, with a message for the queue; gives what the process knows of the link's."""
    raw = link.batch(queue_id, [b"1"], transaction=number, **run)
    await link.send(publishes=[raw], transactions=[pb.TransactionStep(transaction=number, step=PREPARE)])
    await link.until(lambda: any(p.transaction == number for f in link.frames for p in f.prepared))
    host = house.queues["queue-1"]._host
    return next(each._transactions for each in host.links if number in each._transactions._open)


def is_untouched(house: House, queue_id: int) -> bool:
    """Whether nothing of a transaction is left but what it has published."""
    host = house.queues["queue-1"]._host
    queue = host.registry.queues[queue_id]
    undecided = any(partition.undecided for partition in host.registry.partitions.values())
    return not undecided and not (queue._room.count or queue._room.size) and not queue.unsettled


def refusals(link: RawLink, number: int) -> int:
    """How often the gateway was told that a transaction is not held here."""
    return sum(p.transaction == number and p.reason != pb.NONE for f in link.frames for p in f.prepared)


async def test_no_decision_is_heard(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that hears nothing asks, and gives everything back; a late request to complete is not confirmed.

    Its partitions can be handed over at once.
    """
    monkeypatch.setattr(transactions, "_UNTOLD_SECONDS", 0.05)
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    for number, persistent in ((7, False), (8, True)):
        await prepared(house, link, queue_id, number, persistent=persistent)
        await link.until(lambda: is_untouched(house, queue_id))
        await link.until(lambda number=number: refusals(link, number) == 1)
        await link.send(transactions=[pb.TransactionStep(transaction=number, step=COMPLETE)])
        await link.until(lambda number=number: refusals(link, number) == 2)
    assert not any(frame.completed for frame in link.frames)
    host = house.queues["queue-1"]._host
    assert not host.registry.queues[queue_id].ready_count
    assert host.account.used == 0
    assert not house.store._engine.transactions._staged


async def test_no_commit_is_heard(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that hears nothing asks, and carries out what the store has committed."""
    monkeypatch.setattr(transactions, "_UNTOLD_SECONDS", 0.2)
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.attach(queue_id)
    await prepared(house, link, queue_id, 7, persistent=True)
    assert (await house.queues["queue-1"]._host.store.commit_transaction(7, 1)).committed  # type: ignore[attr-defined]
    await link.until(lambda: link.bodies == [b"1"])
    await link.send(settles=[pb.Settle(queue_id=queue_id, uids=link.uids)])
    await link.until(lambda: is_untouched(house, queue_id))
    await link.until(lambda: house.queues["queue-1"]._host.account.used == 0)


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("step", [COMPLETE, ABORT])
async def test_a_gateway_that_asks_is_told(
    house: House, monkeypatch: pytest.MonkeyPatch, step: pb.TransactionStep.Step.ValueType, *, committed: bool
) -> None:
    """While the store is asked, a part that it knows nothing of is not completed before it answers; it is given up."""
    queue_id = await house.declare("q")
    link = await house.link()
    asked, answer = asyncio.Event(), asyncio.Event()

    async def resolve(_number: int) -> store_pb2.TransactionOutcome:
        asked.set()
        await answer.wait()
        return store_pb2.TransactionOutcome(committed=committed)

    monkeypatch.setattr(house.queues["queue-1"]._host.store, "resolve_transaction", resolve)
    monkeypatch.setattr(transactions, "_UNTOLD_SECONDS", 0.0)
    await prepared(house, link, queue_id, 7)
    await asked.wait()
    await link.send(transactions=[pb.TransactionStep(transaction=7, step=step)])
    await link.ready(queue_id, 1)
    told = any(frame.completed for frame in link.frames)
    assert told is (step == ABORT)
    answer.set()
    await link.until(lambda: is_untouched(house, queue_id))
    await link.until(lambda: any(frame.completed for frame in link.frames) or refusals(link, 7))
    done = step == COMPLETE and committed
    assert bool(refusals(link, 7)) is (step == COMPLETE and not committed)
    assert house.queues["queue-1"]._host.registry.queues[queue_id].ready_count == done


async def test_the_gateway_comes_first(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the store is away, nothing is asked, and when it is back the gateway has its time again."""
    queue_id = await house.declare("q")
    link, host = await house.link(), house.queues["queue-1"]._host
    of_link = await prepared(house, link, queue_id, 7)
    transaction = of_link._open[7]
    monkeypatch.setattr(host, "leases_hold", lambda: False)
    first = transaction.patience
    of_link._overdue(7, transaction)
    assert not transaction.asked
    assert transaction.patience is first
    monkeypatch.setattr(host, "leases_hold", lambda: True)
    host.resume(valid=True)
    assert not transaction.asked
    assert transaction.patience is not first
    of_link._overdue(7, transaction)
    assert transaction.asked
    await link.until(lambda: is_untouched(house, queue_id))


async def test_what_is_claimed_meanwhile(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway that comes back before the store does keeps what it held, and no other gets it."""
    queue_id = await house.declare("q")
    link, other, host = await house.link(tells=True), await house.link(origin=1001), house.queues["queue-1"]._host
    await link.publish(queue_id, [b"1"])
    await link.attach(queue_id)
    await link.until(lambda: link.bodies)
    settle = pb.Settle(queue_id=queue_id, uids=link.uids, transaction=7)
    await link.send(settles=[settle], transactions=[pb.TransactionStep(transaction=7, step=PREPARE)])
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    answer = asyncio.Event()

    async def resolve(_number: int) -> store_pb2.TransactionOutcome:
        await answer.wait()
        return store_pb2.TransactionOutcome()

    monkeypatch.setattr(host.store, "resolve_transaction", resolve)
    await link.close()
    again = await house.link(tells=True)
    await again.attach(queue_id, held=link.uids, again=True)
    await other.attach(queue_id)
    await other.until(lambda: not host.departed)
    answer.set()
    await other.until(lambda: not any(partition.undecided for partition in host.registry.partitions.values()))
    assert await other.ready(queue_id, 1) == 0
    await again.send(settles=[pb.Settle(queue_id=queue_id, uids=link.uids)])
    await again.until(lambda: is_untouched(house, queue_id))
    assert not again.bodies
    assert not other.bodies
