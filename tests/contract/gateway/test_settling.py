"""Acknowledge, reject, requeue, get, recover, through a whole broker. AMQP 0-9-1 sections 1.8.3.11 to 1.8.3.16."""

from __future__ import annotations

from pamqp import commands

from services.common.topology.slots import SlotName
from tests.support.amqp_client import AmqpClient
from tests.support.broker_house import BrokerHouse

Basic = commands.Basic


async def filled(broker: BrokerHouse, name: str, count: int) -> AmqpClient:
    """A client, and a queue with messages 0, 1, …"""
    client = await broker.connect()
    await client.declare(name)
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    for number in range(count):
        client.publish(b"%d" % number, name)
    await client.confirmed(count)
    return client


async def ready(client: AmqpClient, name: str) -> int:
    count: int = (await client.declare(name, passive=True)).message_count
    return count


async def test_get_takes_the_first_message_and_says_how_many_remain(broker: BrokerHouse, name: str) -> None:
    """basic.get gives messages in order with the number that remains, then get-empty."""
    client = await filled(broker, name, 2)
    first, second = await client.get(name), await client.get(name, no_ack=True)
    assert first is not None
    assert second is not None
    assert (first.body, first.method.message_count) == (b"0", 1)
    assert (second.body, second.method.message_count, second.tag) == (b"1", 0, 2)
    assert await client.get(name) is None


async def test_what_was_got_and_not_acknowledged_comes_back(broker: BrokerHouse, name: str) -> None:
    """An unacknowledged basic.get is released when its channel closes, and then marked redelivered; an acked is not."""
    client = await filled(broker, name, 2)
    await client.get(name)
    acked = await client.get(name)
    assert acked is not None
    client.ack(acked.tag)
    await client.call(1, commands.Channel.Close(200, "", 0, 0), commands.Channel.CloseOk)
    await client.call(1, commands.Channel.Open(), commands.Channel.OpenOk)
    again = await client.get(name)
    assert again is not None
    assert (again.body, again.method.redelivered) == (b"0", True)
    assert await client.get(name) is None


async def test_nothing_is_kept_of_queues_that_all_was_settled_of(broker: BrokerHouse, name: str) -> None:
    """A session that gets from ever new queues does not grow, whether it settles at once or in transactions."""
    await (await filled(broker, name, 2)).close()
    client = await broker.connect()
    first, second = await client.get(name), await client.get(name)
    assert first is not None
    assert second is not None
    queue_id = broker.topology.by_name[SlotName("/", name)].id
    connections = [each for gateway in broker.gateways for each in gateway._listener._connections]
    sessions = [session for connection in connections for session in connection.sessions.values()]
    (session,) = [each for each in sessions if queue_id in each.get_holders]
    await client.call(1, commands.Tx.Select(), commands.Tx.SelectOk)
    client.ack(second.tag)
    await client.call(1, commands.Tx.Rollback(), commands.Tx.RollbackOk)
    assert [holder.count for holder in session.get_holders.values()] == [2]
    client.ack(first.tag)
    client.ack(second.tag)
    await client.call(1, commands.Tx.Commit(), commands.Tx.CommitOk)
    assert session.get_holders == {}


async def test_ack_multiple_settles_everything_before(broker: BrokerHouse, name: str) -> None:
    """A multiple ack settles the deliveries up to its tag that are still unsettled, and only those."""
    client = await filled(broker, name, 6)
    await client.consume(name)
    await client.bodies(6)
    client.ack(2)
    client.ack(4, multiple=True)
    client.abort()
    other = await broker.connect(1)
    await other.consume(name)
    assert await other.bodies(2) == [b"4", b"5"]


async def test_ack_of_an_unknown_tag_is_a_precondition_failure(broker: BrokerHouse, name: str) -> None:
    """A tag that was never given, or given and settled, closes the channel with 406."""
    client = await filled(broker, name, 2)
    assert await client.refused(1, Basic.Ack(7)) == 406
    await client.consume(name)
    tag = (await client.until(client.messages))[0].tag
    assert await client.refused(1, Basic.Ack(tag), Basic.Ack(tag)) == 406


async def test_what_is_acked_before_an_unknown_tag_is_settled(broker: BrokerHouse, name: str) -> None:
    """Acks that come in one read with a wrong one behind them count."""
    client = await filled(broker, name, 3)
    await client.consume(name)
    await client.bodies(3)
    assert await client.refused(1, Basic.Ack(1), Basic.Ack(2), Basic.Ack(3), Basic.Ack(4)) == 406
    assert await ready(client, name) == 0


async def test_requeued_messages_go_back_to_their_places(broker: BrokerHouse, name: str) -> None:
    """nack with multiple and requeue restores the order; the messages come again marked redelivered."""
    client = await filled(broker, name, 4)
    for _ in range(3):
        await client.get(name)
    client.send(1, Basic.Nack(3, True, True))
    got = [await client.get(name) for _ in range(4)]
    assert [message.body for message in got if message] == [b"0", b"1", b"2", b"3"]
    assert [message.method.redelivered for message in got if message] == [True, True, True, False]


async def test_reject_without_requeue_drops(broker: BrokerHouse, name: str) -> None:
    """A rejected message without a dead-letter exchange is gone."""
    client = await filled(broker, name, 1)
    message = await client.get(name)
    assert message is not None
    client.send(1, Basic.Reject(message.tag, False))
    assert await client.get(name) is None


async def test_recover_gives_everything_back(broker: BrokerHouse, name: str) -> None:
    """basic.recover requeues what is unsettled, and the consumer gets it again, redelivered."""
    client = await filled(broker, name, 2)
    await client.consume(name)
    await client.bodies(2)
    await client.call(1, Basic.Recover(True), Basic.RecoverOk)
    await client.bodies(4)
    again = client.messages()[2:]
    assert [(message.body, message.method.redelivered) for message in again] == [(b"0", True), (b"1", True)]
    assert await client.refused(1, Basic.Ack(1)) == 406


async def test_acks_by_multiple_cost_what_they_settle(broker: BrokerHouse, name: str) -> None:
    """Twenty thousand unsettled deliveries are acknowledged one multiple ack at a time within seconds."""
    count = 20_000
    client = await filled(broker, name, count)
    await client.consume(name)
    await client.bodies(count, seconds=30)
    for tag in range(1, count + 1):
        client.ack(tag, multiple=True)
    assert await ready(client, name) == 0
    client.abort()
    other = await broker.connect()
    assert await ready(other, name) == 0
