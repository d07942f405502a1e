"""tx through a whole broker: all or nothing over queues of several processes. Section 1.9, design section 7."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from tests.contract.gateway.test_settling import filled, ready
from tests.support.amqp_client import AmqpClient
from tests.support.broker_house import BrokerHouse

Tx = commands.Tx


async def transactional(broker: BrokerHouse) -> AmqpClient:
    client = await broker.connect()
    await client.call(1, Tx.Select(), Tx.SelectOk)
    return client


async def many_queues(broker: BrokerHouse, name: str) -> list[str]:
    """Enough that both processes own some."""
    client, names = await broker.connect(), [f"{name}-{number}" for number in range(8)]
    for each in names:
        await client.declare(each, durable=True)
    return names


async def test_a_commit_publishes_everything(broker: BrokerHouse, name: str) -> None:
    """Messages to queues in both processes are invisible before tx.commit and all there after commit-ok."""
    names = await many_queues(broker, name)
    client, other = await transactional(broker), await broker.connect(1)
    for each in names:
        client.publish(b"x", each, delivery_mode=2)
    await client.declare(names[0], passive=True)
    assert [await ready(other, each) for each in names] == [0] * 8
    await client.call(1, Tx.Commit(), Tx.CommitOk)
    assert [await ready(other, each) for each in names] == [1] * 8


async def test_a_rollback_forgets_publishes(broker: BrokerHouse, name: str) -> None:
    """What was published before tx.rollback is nowhere, what comes after it is committed alone."""
    client = await transactional(broker)
    await client.declare(name)
    client.publish(b"no", name)
    await client.call(1, Tx.Rollback(), Tx.RollbackOk)
    client.publish(b"yes", name)
    await client.call(1, Tx.Commit(), Tx.CommitOk)
    message = await client.get(name)
    assert message is not None
    assert message.body == b"yes"


async def test_a_full_queue_refuses_the_whole_transaction(broker: BrokerHouse, name: str) -> None:
    """When one queue refuses, the channel is closed and no queue has anything of the transaction."""
    names = await many_queues(broker, name)
    client, other = await transactional(broker), await broker.connect()
    limits = {"x-max-length": 1, "x-overflow": "reject-publish"}
    await other.declare(name, arguments=limits)
    for each in [*names, name, name]:
        client.publish(b"x", each, delivery_mode=2)
    assert await client.refused(1, Tx.Commit()) == 406
    assert [await ready(other, each) for each in [*names, name]] == [0] * 9


async def test_acks_wait_for_the_commit(broker: BrokerHouse, name: str) -> None:
    """An acked delivery is gone after the commit; without it, it comes back when the channel closes."""
    await filled(broker, name, 2)
    client = await transactional(broker)
    for commit in (True, False):
        message = await client.get(name)
        assert message is not None
        client.ack(message.tag)
        if commit:
            await client.call(1, Tx.Commit(), Tx.CommitOk)
    await client.call(1, commands.Channel.Close(200, "", 0, 0), commands.Channel.CloseOk)
    await client.call(1, commands.Channel.Open(), commands.Channel.OpenOk)
    again = await client.get(name)
    assert again is not None
    assert (again.body, again.method.redelivered) == (b"1", True)


async def test_rolled_back_acks_leave_deliveries_unsettled(broker: BrokerHouse, name: str) -> None:
    """After tx.rollback the same deliveries can be acked again, one by one or by multiple."""
    await filled(broker, name, 3)
    client = await transactional(broker)
    for _ in range(3):
        await client.get(name)
    client.ack(2, multiple=True)
    await client.call(1, Tx.Rollback(), Tx.RollbackOk)
    client.ack(1)
    client.ack(3, multiple=True)
    await client.call(1, Tx.Commit(), Tx.CommitOk)
    client.abort()
    assert await ready(await broker.connect(), name) == 0


async def test_unroutable_mandatory_messages_are_returned_by_the_commit(broker: BrokerHouse, name: str) -> None:
    """A return comes before commit-ok; a rollback returns nothing."""
    client = await transactional(broker)
    client.publish(b"no", name, mandatory=True)
    await client.call(1, Tx.Rollback(), Tx.RollbackOk)
    client.publish(b"yes", name, mandatory=True)
    await client.call(1, Tx.Commit(), Tx.CommitOk)
    assert [message.body for message in client.messages(commands.Basic.Return)] == [b"yes"]


async def test_an_ack_for_a_deleted_queue_does_not_hold_a_commit_up(broker: BrokerHouse, name: str) -> None:
    """A commit with an ack of a queue that is no more succeeds at once, with what else it has."""
    await filled(broker, name, 1)
    client, other = await transactional(broker), await broker.connect()
    await other.declare(name + "-2")
    message = await client.get(name)
    assert message is not None
    client.ack(message.tag)
    await other.call(1, commands.Queue.Delete(queue=name), commands.Queue.DeleteOk)
    client.publish(b"x", name + "-2")
    await client.call(1, Tx.Commit(), Tx.CommitOk, seconds=3)
    assert await ready(other, name + "-2") == 1


async def test_a_transaction_may_be_larger_than_a_frame(broker: BrokerHouse, name: str) -> None:
    """60 MB to one queue are committed at once."""
    client = await transactional(broker)
    await client.declare(name)
    for _ in range(6):
        client.publish(b"x" * 10_000_000, name, frame_size=131_000)
    await client.call(1, Tx.Commit(), Tx.CommitOk, seconds=30)
    assert await ready(client, name) == 6
    await client.call(1, commands.Queue.Purge(queue=name), commands.Queue.PurgeOk)


async def test_open_transactions_are_bounded(broker: BrokerHouse, name: str) -> None:
    """One that is too much for the gateway ends its channel; what others hold is free again when they are decided."""
    client, other = await transactional(broker), await transactional(broker)
    await client.declare(name)
    of_all = broker.gateways[0]._broker.transactions.open
    limit, of_all.limit, before = of_all.limit, 1 << 20, of_all.used
    try:
        client.publish(bytes(600_000), name)
        await client.declare(name)
        other.publish(bytes(600_000), name)
        assert (await other.expect(commands.Channel.Close)).reply_code == 406
        await client.call(1, Tx.Commit(), Tx.CommitOk)
        assert of_all.used == before
        for _ in range(2):
            client.publish(bytes(600_000), name)
            await client.call(1, Tx.Rollback(), Tx.RollbackOk)
        assert of_all.used == before
    finally:
        of_all.limit = limit


async def test_a_transaction_keeps_its_order(broker: BrokerHouse, name: str) -> None:
    """Persistent and transient messages of a transaction are in their queue as they were published."""
    client = await transactional(broker)
    await client.declare(name, durable=True)
    for number in range(10):
        client.publish(b"%d" % number, name, delivery_mode=1 + number % 2)
    await client.call(1, Tx.Commit(), Tx.CommitOk)
    await client.consume(name, no_ack=True)
    assert await client.bodies(10) == [b"%d" % number for number in range(10)]


async def test_a_commit_in_front_of_a_mistake(broker: BrokerHouse, name: str) -> None:
    """confirm.select is refused on a channel with transactions in its turn: what was asked before it is answered."""
    client = await transactional(broker)
    await client.declare(name)
    client.publish(b"x", name)
    client.send(1, Tx.Commit())
    client.send(1, commands.Confirm.Select())
    await client.expect(Tx.CommitOk, 1)
    assert (await client.expect(commands.Channel.Close, 1)).reply_code == 406


@pytest.mark.parametrize(("one", "other"), [(commands.Confirm.Select, Tx.Select), (Tx.Select, commands.Confirm.Select)])
async def test_either_confirms_or_transactions(broker: BrokerHouse, one: Any, other: Any) -> None:
    """As with RabbitMQ: the second is a precondition that failed."""
    client = await broker.connect()
    client.send(1, one(), one())
    assert await client.refused(1, other()) == 406
    [close] = client.of(commands.Channel.Close)
    assert (close.class_id, close.method_id) == (other.index >> 16, 10)
