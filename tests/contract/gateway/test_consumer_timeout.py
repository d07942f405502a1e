"""x-consumer-timeout: a consumer that keeps a delivery for too long loses it, and is cancelled."""

from __future__ import annotations

import asyncio

from pamqp import commands

from services.gateway.protocols.amqp_1_0.performatives import Detach, Flow, Transfer
from tests.contract.gateway.test_settling import ready
from tests.support.amqp_1_0_client import Client
from tests.support.amqp_1_0_playbook import framed
from tests.support.broker_house import BrokerHouse

_SOON = {"x-consumer-timeout": 300}
_LATER = {"x-consumer-timeout": 1500}


async def test_a_consumer_that_says_nothing(broker: BrokerHouse, name: str) -> None:
    """It is cancelled, what it had goes to others as redelivered, and what it says of that yet is no fault."""
    slow, other = await broker.connect(), await broker.connect()
    await slow.declare(name, arguments=_SOON)
    await slow.consume(name, "slow")
    slow.publish(b"1", name)
    slow.publish(b"2", name)
    await slow.bodies(2)
    slow.ack(1)
    cancelled = await slow.expect(commands.Basic.Cancel)
    assert cancelled.consumer_tag == "slow"
    await other.consume(name)
    assert await other.bodies(1) == [b"2"]
    assert other.messages()[0].method.redelivered
    slow.ack(2)
    slow.ack(2, multiple=True)
    assert await ready(slow, name) == 0
    other.ack(1)
    await slow.consume(name, "slow")
    slow.publish(b"3", name)
    await slow.bodies(3)
    slow.ack(3)
    assert not slow.of(commands.Channel.Close)


async def test_a_consumer_that_settles_in_time(broker: BrokerHouse, name: str) -> None:
    """It goes on, however long all of it takes; so does one that settles by being sent to."""
    client = await broker.connect()
    await client.declare(name, arguments=_LATER)
    await client.consume(name, "asked")
    await client.declare(f"{name}-settled", arguments=_LATER)
    await client.consume(f"{name}-settled", "settled", no_ack=True)
    for number in range(6):
        client.publish(b"", name)
        client.publish(b"", f"{name}-settled")
        await client.bodies(2 * number + 2)
        [tag] = [each.tag for each in client.messages()[-2:] if each.method.consumer_tag == "asked"]
        client.ack(tag)
        await asyncio.sleep(0.3)
    await asyncio.sleep(1.7)
    assert not client.of(commands.Basic.Cancel)


async def test_a_client_that_is_gone(broker: BrokerHouse, name: str) -> None:
    """What it had is given back once: as it goes, and not again when the time is over."""
    gone, other = await broker.connect(), await broker.connect()
    await gone.declare(name, arguments=_SOON)
    await gone.consume(name)
    gone.publish(b"1", name)
    await gone.bodies(1)
    gone.abort()
    await other.consume(name, no_ack=True)
    assert await other.bodies(1) == [b"1"]
    await asyncio.sleep(0.5)
    assert await ready(other, name) == 0


async def test_a_link_of_1_0(broker: BrokerHouse, name: str) -> None:
    """AMQP 1.0, 2.6.1: its link is detached with an error, the session goes on, and what it had goes to others."""
    other = await broker.connect()
    await other.declare(name, arguments=_SOON)
    client = Client()
    await client.open(broker.ports[0], "guest", "guest", "/")
    assert not await client.receives_from(name)
    client._writer.write(framed(0, Flow(0, 100, 0, 100, 0, 0, 10)))
    other.publish(b"1", name)
    await client.next(Transfer)
    assert (await client.next(Detach)).error is not None
    await other.consume(name)
    assert await other.bodies(1) == [b"1"]
    assert not await client.receives_from(name)
    await client.close()


async def test_what_is_rolled_back_is_kept_for_so_long_again(broker: BrokerHouse, name: str) -> None:
    """The time was over while a transaction had it: then it begins anew, and what is kept goes to others."""
    slow, other = await broker.connect(), await broker.connect()
    await slow.declare(name, arguments=_SOON)
    await slow.call(1, commands.Tx.Select(), commands.Tx.SelectOk)
    await slow.consume(name, "slow")
    other.publish(b"1", name)
    await slow.bodies(1)
    slow.ack(1)
    await asyncio.sleep(0.5)
    assert not slow.of(commands.Basic.Cancel)
    await slow.call(1, commands.Tx.Rollback(), commands.Tx.RollbackOk)
    assert not slow.of(commands.Basic.Cancel)
    await slow.expect(commands.Basic.Cancel)
    await other.consume(name)
    assert await other.bodies(1) == [b"1"]
