"""A queue process goes: what clients hold stays theirs, what they have not heard of is sent again (design 5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pamqp import commands

from services.queue.links.link import PeerLink
from services.queue.links.transactions import Transactions
from services.rpc.queue_pb2 import LinkFrame, TransactionStep
from tests.contract.gateway.test_settling import ready
from tests.support.broker_house import BrokerHouse


@pytest_asyncio.fixture(loop_scope="session")
async def house(tmp_path: Path) -> AsyncIterator[BrokerHouse]:
    """A broker of its own, with one queue process that can be taken away."""
    async with BrokerHouse(tmp_path, gateways=1, queues=1) as house:
        yield house


@pytest_asyncio.fixture(loop_scope="session")
async def wide(tmp_path: Path) -> AsyncIterator[BrokerHouse]:
    """A broker with two gateways and one queue process."""
    async with BrokerHouse(tmp_path, gateways=2, queues=1) as house:
        yield house


async def durable(house: BrokerHouse, name: str, count: int) -> Any:
    """A client and a durable queue with persistent messages 0, 1, …"""
    client = await house.connect()
    await client.declare(name, durable=True)
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    for number in range(count):
        client.publish(b"%d" % number, name, delivery_mode=2)
    await client.confirmed(count)
    return client


async def replace_owner(house: BrokerHouse) -> None:
    """The only queue process goes, another one comes."""
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-2")


async def test_consumers_survive_with_what_they_hold(house: BrokerHouse) -> None:
    """Unsettled deliveries are not delivered again, their tags can be acked, and new messages come on the same tag."""
    client = await durable(house, "q", 4)
    await client.prefetch(3)
    await client.consume("q")
    await client.bodies(3)
    await replace_owner(house)
    await asyncio.sleep(0.5)
    client.ack(3, multiple=True)
    assert await client.bodies(4) == [b"0", b"1", b"2", b"3"]
    client.ack(4)
    client.publish(b"4", "q", delivery_mode=2)
    assert (await client.bodies(5))[4] == b"4"
    client.ack(5)
    assert await ready(client, "q") == 0


async def test_acks_while_there_is_no_owner_count(house: BrokerHouse) -> None:
    """Deliveries that are acked between two owners are not delivered by the next."""
    client = await durable(house, "q", 5)
    await client.prefetch(4)
    await client.consume("q")
    await client.bodies(4)
    await house.queues.pop("queue-1").stop()
    await asyncio.sleep(0.2)
    client.ack(3, multiple=True)
    await asyncio.sleep(0.2)
    await house.start_queue("queue-2")
    assert await client.bodies(5) == [b"0", b"1", b"2", b"3", b"4"]
    client.ack(5, multiple=True)
    await asyncio.sleep(0.3)
    client.abort()
    assert await ready(await house.connect(), "q") == 0


async def test_acks_that_the_owner_did_not_carry_out_count(house: BrokerHouse) -> None:
    """Deliveries whose acks were lost with their owner are not delivered by the next, and are gone for good."""
    client = await durable(house, "q", 5)
    await client.prefetch(4)
    await client.consume("q")
    await client.bodies(4)
    for link in house.queues["queue-1"]._host.links:
        link._settle_all = lambda _settles, _now: None
    client.ack(3, multiple=True)
    await asyncio.sleep(0.2)
    await replace_owner(house)
    assert await client.bodies(5) == [b"0", b"1", b"2", b"3", b"4"]
    client.ack(5, multiple=True)
    await asyncio.sleep(0.3)
    client.abort()
    assert await ready(await house.connect(), "q") == 0


async def test_what_has_no_consumer_stays_held_too(house: BrokerHouse) -> None:
    """What basic.get took, or a consumer that was cancelled since, is not given to others, and can be acked."""
    client = await durable(house, "q", 3)
    await client.get("q")
    await client.prefetch(1)
    await client.consume("q", "gone")
    await client.bodies(1)
    await client.call(1, commands.Basic.Cancel("gone"), commands.Basic.CancelOk)
    await replace_owner(house)
    await asyncio.sleep(0.5)
    other = await house.connect()
    await other.consume("q")
    await asyncio.sleep(0.3)
    assert await other.bodies(1) == [b"2"]
    client.ack(2, multiple=True)
    other.ack(1)
    assert await ready(client, "q") == 0
    assert len(other.messages()) == 1


async def test_what_is_held_of_an_auto_delete_queue(house: BrokerHouse) -> None:
    """Without a consumer of its own, too: it is not given to others, can be acked, and the queue stays."""
    client, other = await house.connect(), await house.connect()
    await client.declare("q", durable=True, auto_delete=True)
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    for number in range(2):
        client.publish(b"%d" % number, "q", delivery_mode=2)
    await client.confirmed(2)
    message = await client.get("q")
    assert message
    await replace_owner(house)
    assert await ready(other, "q") == 1
    client.ack(message.method.delivery_tag)
    await other.consume("q")
    assert await other.bodies(1) == [b"1"]
    await house.queues.pop("queue-2").stop()
    await house.start_queue("queue-3")
    other.ack(1)
    assert await ready(other, "q") == 0
    assert [each.body for each in other.messages()] == [b"1"]


async def test_unconfirmed_publishes_are_confirmed_by_the_next_owner(house: BrokerHouse) -> None:
    """Publishes that go out while there is no owner are confirmed when there is one, in order, each once."""
    client = await durable(house, "q", 1)
    await house.queues.pop("queue-1").stop()
    for number in range(1, 500):
        client.publish(b"%d" % number, "q", delivery_mode=2)
    await asyncio.sleep(0.2)
    await house.start_queue("queue-2")
    await client.confirmed(500, seconds=20)
    await client.consume("q", no_ack=True)
    assert await client.bodies(500) == [b"%d" % number for number in range(500)]


async def test_a_transaction_waits_for_the_next_owner(house: BrokerHouse) -> None:
    """A commit that finds no owner is carried out, once, when there is one."""
    client = await durable(house, "q", 1)
    tx = await house.connect()
    await tx.call(1, commands.Tx.Select(), commands.Tx.SelectOk)
    got = await tx.get("q")
    assert got is not None
    tx.ack(got.tag)
    tx.publish(b"new", "q", delivery_mode=2)
    await house.queues.pop("queue-1").stop()
    tx.send(1, commands.Tx.Commit())
    await asyncio.sleep(0.3)
    await house.start_queue("queue-2")
    await tx.expect(commands.Tx.CommitOk, seconds=20)
    message = await client.get("q")
    assert message is not None
    assert message.body == b"new"
    assert await client.get("q") is None


async def test_requests_wait_for_the_next_owner(house: BrokerHouse) -> None:
    """consume, get and purge that come while there is no owner are answered when there is one."""
    client = await durable(house, "q", 1)
    await client.get("q", no_ack=True)
    clients = [await house.connect() for _ in range(3)]
    await house.queues.pop("queue-1").stop()
    clients[0].send(1, commands.Basic.Consume(queue="q", consumer_tag="c"))
    clients[1].send(1, commands.Basic.Get(queue="q"))
    clients[2].send(1, commands.Queue.Purge(queue="q"))
    await asyncio.sleep(0.5)
    await house.start_queue("queue-2")
    await clients[1].expect(commands.Basic.GetEmpty)
    await clients[2].expect(commands.Queue.PurgeOk)
    await clients[0].expect(commands.Basic.ConsumeOk)
    client.publish(b"x", "q")
    assert await clients[0].bodies(1) == [b"x"]


async def test_consumers_come_and_go_while_owners_change(house: BrokerHouse) -> None:
    """basic.consume and basic.cancel are answered, and deliver, while partitions move to and fro."""
    client = await house.connect()
    queues = [f"q-{number}" for number in range(8)]
    for queue in queues:
        await client.declare(queue)
    moving = asyncio.get_running_loop().create_task(_move(house))
    rounds = 0
    while not moving.done():
        rounds += 1
        for queue in queues:
            await client.consume(queue, queue)
        for queue in queues:
            await client.call(1, commands.Basic.Cancel(queue), commands.Basic.CancelOk)
    await moving
    for queue in queues:
        await client.consume(queue, queue)
        client.publish(queue.encode(), queue)
    await client.until(lambda: {message.body.decode() for message in client.messages()} == set(queues))
    assert rounds > 1


async def _move(house: BrokerHouse) -> None:
    for came, goes in (("queue-2", "queue-1"), ("queue-3", "queue-2")):
        await house.start_queue(came)
        await asyncio.sleep(0.4)  # shares move bit by bit, under way with the consumers
        await house.queues.pop(goes).stop()
        await asyncio.sleep(0.4)


async def test_a_transient_transaction_is_decided_one_way(house: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the stream breaks between prepare and complete, commit-ok still means that everything is there, once."""
    client = await house.connect()
    await client.declare("one")
    await client.declare("two")
    await client.call(1, commands.Tx.Select(), commands.Tx.SelectOk)
    client.publish(b"x", "one")
    client.publish(b"y", "two")
    step = Transactions.step
    broken: list[int] = []

    def break_once(self: Transactions, said: TransactionStep, now: int) -> None:
        if said.step == TransactionStep.COMPLETE and not broken:
            broken.append(said.transaction)
            raise ConnectionResetError("the stream breaks")
        step(self, said, now)

    monkeypatch.setattr(Transactions, "step", break_once)
    await client.call(1, commands.Tx.Commit(), commands.Tx.CommitOk)
    other = await house.connect()
    async with asyncio.timeout(10):
        while [await ready(other, "one"), await ready(other, "two")] != [1, 1]:
            await asyncio.sleep(0.02)
    assert broken


async def test_a_torn_stream_is_not_noticed(wide: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """When only the stream of a gateway breaks, its clients keep what they hold, and queues that live by them."""
    client, other = await wide.connect(0), await wide.connect(1)
    await client.declare("q", auto_delete=True)
    await client.prefetch(2)
    await client.consume("q")
    for number in range(3):
        client.publish(b"%d" % number, "q")
    await client.bodies(2)
    receive = PeerLink.receive
    torn: list[str] = []

    def tear_once(self: PeerLink, frame: LinkFrame, publishes: Sequence[Any]) -> None:
        if publishes and not torn:
            torn.append(self.name)
            raise ConnectionResetError("the stream breaks")
        receive(self, frame, publishes)

    monkeypatch.setattr(PeerLink, "receive", tear_once)
    client.publish(b"3", "q")
    async with asyncio.timeout(10):
        while not torn:
            await asyncio.sleep(0.005)
    await other.consume("q")
    assert await other.bodies(2) == [b"2", b"3"]
    client.ack(2, multiple=True)
    other.ack(2, multiple=True)
    await asyncio.sleep(1.5)
    assert await ready(client, "q") == 0
    assert [len(each.messages()) for each in (client, other)] == [2, 2]


async def test_every_copy_of_a_fan_out_is_there(house: BrokerHouse) -> None:
    """Of persistent messages to 20 queues, each confirmed one is in all, once and in order, as owners change."""
    queues = [f"copy-{number}" for number in range(20)]
    client = await house.connect()
    await client.call(
        1, commands.Exchange.Declare(exchange="copies", exchange_type="fanout"), commands.Exchange.DeclareOk
    )
    for queue in queues:
        await client.declare(queue, durable=True)
        await client.call(1, commands.Queue.Bind(queue=queue, exchange="copies"), commands.Queue.BindOk)
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    moving = asyncio.get_running_loop().create_task(_move(house))
    sent = 0
    while not moving.done() or sent < 500:
        client.publish(b"%d" % sent, "", exchange="copies", delivery_mode=2)
        sent += 1
        if sent % 50 == 0:
            await client.confirmed(sent - 25, seconds=60)
    await moving
    await client.confirmed(sent, seconds=60)
    for queue in queues:
        await client.consume(queue, queue, no_ack=True)
    await client.until(lambda: len(client.messages()) >= sent * len(queues), seconds=60)
    bodies: dict[str, list[bytes]] = {}
    for message in client.messages():
        bodies.setdefault(message.method.consumer_tag, []).append(message.body)
    numbers = [b"%d" % number for number in range(sent)]
    assert all(bodies[queue] == numbers for queue in queues)
