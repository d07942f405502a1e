"""How many deliveries may be unsettled: per consumer, over a channel, while flow is stopped. Section 1.8.3.1."""

from __future__ import annotations

import asyncio

from pamqp import commands

from tests.contract.gateway.test_settling import filled
from tests.support.broker_house import BrokerHouse

_QUIET = 0.2  # seconds in which nothing more may come


async def test_a_consumer_gets_no_more_than_its_prefetch(broker: BrokerHouse, name: str) -> None:
    """With prefetch 3 three come, and each ack brings one more."""
    client = await filled(broker, name, 10)
    await client.prefetch(3)
    await client.consume(name)
    await asyncio.sleep(_QUIET)
    assert await client.bodies(3) == [b"0", b"1", b"2"]
    client.ack(1)
    await asyncio.sleep(_QUIET)
    assert await client.bodies(4) == [b"0", b"1", b"2", b"3"]


async def test_prefetch_one_alternates_between_consumers(broker: BrokerHouse, name: str) -> None:
    """Two consumers of different gateways with prefetch 1 each hold exactly one message."""
    first = await filled(broker, name, 4)
    second = await broker.connect(1)
    for client in (first, second):
        await client.prefetch(1)
        await client.consume(name)
        await client.bodies(1)
    for client in (first, second):
        client.ack(1)
        await client.bodies(2)
    await asyncio.sleep(_QUIET)
    assert await first.bodies(2) == [b"0", b"2"]
    assert await second.bodies(2) == [b"1", b"3"]


async def test_a_new_prefetch_is_for_consumers_to_come(broker: BrokerHouse, name: str) -> None:
    """basic.qos after basic.consume leaves the consumer's limit as it is."""
    client = await filled(broker, name, 9)
    await client.prefetch(2)
    await client.consume(name, "a")
    await client.prefetch(4)
    await client.consume(name, "b")
    await client.bodies(6)
    await asyncio.sleep(_QUIET)
    tags = [message.method.consumer_tag for message in client.messages()]
    assert (tags.count("a"), tags.count("b")) == (2, 4)


async def test_a_shared_prefetch_is_over_all_consumers(broker: BrokerHouse, name: str) -> None:
    """With a shared limit of 2, two consumers on two queues hold two messages together."""
    client = await filled(broker, name, 5)
    await client.declare(name + "-2")
    for number in range(5):
        client.publish(b"%d" % number, name + "-2")
    await client.confirmed(10)
    await client.prefetch(2, shared=True)
    await client.consume(name, "a")
    await client.consume(name + "-2", "b")
    for done in range(8):
        await client.bodies(2 + done)
        await asyncio.sleep(0.05)
        assert len(client.messages()) == 2 + done
        client.ack(done + 1)
    await client.bodies(10)
    for tag in ("a", "b"):
        bodies = [message.body for message in client.messages() if message.method.consumer_tag == tag]
        assert bodies == [b"0", b"1", b"2", b"3", b"4"]


async def test_what_a_shared_prefetch_holds_back_others_get(broker: BrokerHouse, name: str) -> None:
    """A channel with a shared limit of 1 takes one message of a queue; the rest is free for another client."""
    first = await filled(broker, name, 50)
    await first.prefetch(1, shared=True)
    await first.consume(name)
    await first.bodies(1)
    second = await broker.connect(1)
    await second.consume(name)
    assert await second.bodies(49) == [b"%d" % number for number in range(1, 50)]


async def test_a_shared_prefetch_that_comes_late_gives_back_what_it_forbids(broker: BrokerHouse, name: str) -> None:
    """Consumers that were unlimited keep what they hold, and get nothing new before it is settled."""
    client = await broker.connect()
    await client.declare(name)
    await client.consume(name)
    await client.prefetch(2, shared=True)
    for number in range(6):
        client.publish(b"%d" % number, name)
    await client.bodies(2)
    await asyncio.sleep(_QUIET)
    assert len(client.messages()) == 2
    client.ack(2, multiple=True)
    assert (await client.bodies(4))[2:] == [b"2", b"3"]
    await client.prefetch(0, shared=True)
    assert (await client.bodies(6))[4:] == [b"4", b"5"]


async def test_a_shared_prefetch_spares_consumers_without_acks(broker: BrokerHouse, name: str) -> None:
    """A consumer that does not acknowledge gets replies while the channel's limit is used up."""
    client = await filled(broker, name, 2)
    await client.declare(name + "-replies")
    await client.prefetch(1, shared=True)
    await client.consume(name)
    await client.consume(name + "-replies", "r", no_ack=True)
    await client.bodies(1)
    client.publish(b"reply", name + "-replies")
    assert (await client.bodies(2))[1] == b"reply"


async def test_flow_stops_deliveries_and_lets_them_go_on(broker: BrokerHouse, name: str) -> None:
    """channel.flow with active false stops deliveries of the channel until it is true again."""
    client = await broker.connect()
    await client.declare(name)
    await client.consume(name)
    await client.call(1, commands.Channel.Flow(False), commands.Channel.FlowOk)
    client.publish(b"x", name)
    await asyncio.sleep(_QUIET)
    assert not client.messages()
    await client.call(1, commands.Channel.Flow(True), commands.Channel.FlowOk)
    assert await client.bodies(1) == [b"x"]
