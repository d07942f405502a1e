"""A publish is refused for its content: what was asked on its channel in front of it, in the same read, is answered."""

from __future__ import annotations

import pytest
from pamqp import commands

from tests.contract.gateway.test_settling import ready
from tests.support.amqp_playbook import content, written
from tests.support.broker_house import BrokerHouse

_FAULT = content(1, b"x", expiration="soon")


async def test_messages_that_were_taken(broker: BrokerHouse, name: str) -> None:
    """basic.get without acknowledgement: each message that left the queue came."""
    client, other = await broker.connect(), await broker.connect()
    await client.declare(name)
    for number in range(5):
        other.publish(b"%d" % number, name)
    while await ready(other, name) < 5:
        pass
    client.writer.write(written(1, commands.Basic.Get(queue=name, no_ack=True)) * 3 + _FAULT)
    assert (await client.expect(commands.Channel.Close)).reply_code == 406
    assert [message.body for message in client.messages(commands.Basic.GetOk)] == [b"0", b"1", b"2"]
    assert await ready(other, name) == 2


async def test_a_transaction_that_was_committed(broker: BrokerHouse, name: str) -> None:
    """commit-ok comes, and what was committed is there once."""
    client, other = await broker.connect(), await broker.connect()
    await client.declare(name)
    await client.call(1, commands.Tx.Select(), commands.Tx.SelectOk)
    client.writer.write(content(1, b"a", routing_key=name) * 3 + written(1, commands.Tx.Commit()) + _FAULT)
    assert (await client.expect(commands.Channel.Close)).reply_code == 406
    assert client.of(commands.Tx.CommitOk)
    assert await ready(other, name) == 3


async def test_messages_for_no_queue(broker: BrokerHouse, name: str) -> None:
    """Each mandatory one is returned; a queue that was declared between them is there, and its client knows."""
    client = await broker.connect()
    nowhere = content(1, b"n", routing_key=f"nowhere of {name}", mandatory=True)
    client.writer.write(nowhere * 2 + written(1, commands.Queue.Declare(queue=name)) + nowhere + _FAULT)
    assert (await client.expect(commands.Channel.Close)).reply_code == 406
    assert len(client.messages(commands.Basic.Return)) == 3
    assert client.of(commands.Queue.DeclareOk)


@pytest.mark.parametrize("confirms", [True, False])
async def test_what_was_published(broker: BrokerHouse, name: str, *, confirms: bool) -> None:
    """It is in its queue; the connection goes on, and the channel's number with it."""
    client, other = await broker.connect(), await broker.connect()
    await client.declare(name)
    if confirms:
        await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    client.writer.write(content(1, b"a", routing_key=name) * 50 + _FAULT + content(1, b"b", routing_key=name))
    assert (await client.expect(commands.Channel.Close)).reply_code == 406
    client.send(1, commands.Channel.CloseOk())
    await client.call(1, commands.Channel.Open(), commands.Channel.OpenOk)
    while await ready(other, name) < 50:
        pass
    client.publish(b"again", name)
    while await ready(other, name) < 51:
        pass
