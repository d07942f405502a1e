"""Consumers that do not want what their own connection publishes. AMQP 0-9-1 section 1.8.3.3, `no-local`; Broker-J."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from services.common.message.amqp_1_0.values import Described, Symbol, ULong
from services.gateway.protocols.amqp_1_0.states import Accepted, Rejected
from tests.support.amqp_1_0_client import Client
from tests.support.broker_house import BrokerHouse

NOT_ITS_OWN = {Symbol("any"): Described(ULong(0x0000468C_00000003), [])}


@pytest.mark.parametrize("asked", [{"no_local": True}, {"arguments": {"x-qpid-no-local": True}}])
@pytest.mark.parametrize("durable", [False, True])
async def test_its_own_are_for_others(broker: BrokerHouse, name: str, asked: dict[str, Any], durable: bool) -> None:
    """It gets what others publish; what it publishes waits for another consumer, of its own connection too."""
    client, other = await broker.connect(channels=2), await broker.connect(1)
    await client.declare(name, durable=durable)
    await client.consume(name, "deaf", no_ack=True, **asked)
    mode = 2 if durable else 1
    for publisher, bodies in ((client, (b"1", b"2")), (other, (b"3",)), (client, (b"4",))):
        for body in bodies:
            publisher.publish(body, name, delivery_mode=mode)
    assert await client.bodies(1) == [b"3"]
    while (await client.declare(name, passive=True)).message_count < 3:
        pass
    await client.consume(name, "all", channel=2, no_ack=True)
    assert sorted((await client.bodies(4))[1:]) == [b"1", b"2", b"4"]
    assert [m.body for m in client.messages() if m.method.consumer_tag == "deaf"] == [b"3"]


async def test_a_queue_that_has_it_so(broker: BrokerHouse, name: str) -> None:
    """noLocal of Broker-J's model, no-local on its wire: so it is for all consumers of the queue."""
    other = await broker.connect(1)
    for number, said in enumerate(({"noLocal": True}, {"no-local": "true"})):
        queue, client = f"{name}-{number}", await broker.connect()
        await client.declare(queue, arguments=said)
        await client.consume(queue, no_ack=True)
        client.publish(b"own", queue)
        other.publish(b"other's", queue)
        assert await client.bodies(1) == [b"other's"]
        await client.declare(queue, passive=True)
        assert len(client.messages()) == 1


async def test_what_says_nothing(broker: BrokerHouse, name: str) -> None:
    """Closes the channel with 406, which names the argument."""
    client = await broker.connect()
    await client.declare(name)
    consume = commands.Basic.Consume(queue=name, arguments={"x-qpid-no-local": "x"})
    assert await client.refused(1, consume) == 406
    assert "x-qpid-no-local" in client.of(commands.Channel.Close)[-1].reply_text


async def test_a_link_of_an_exchange(broker: BrokerHouse, name: str) -> None:
    """Messages of its own connection do not even wait in its queue. Those of others do."""
    declaring = await broker.connect()
    declare = commands.Exchange.Declare(exchange=name, exchange_type="fanout")
    await declaring.call(1, declare, commands.Exchange.DeclareOk)
    client, other = Client(), Client()
    for each in (client, other):
        await each.open(broker.ports[0], "guest", "guest", "/")
    assert await client.receives_from(name, filter=NOT_ITS_OWN) == ""
    for each, state in ((client, Rejected), (other, Accepted)):
        assert await each.sends_to(f"/exchanges/{name}/k") == ""
        assert isinstance(await each.sends(), state)
    for each in (client, other):
        await each.close()


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
async def test_a_binding(broker: BrokerHouse, name: str, kind: str) -> None:
    """It passes on nothing that a consumer of the queue publishes, on whichever channel, and all else."""
    client, other = await broker.connect(channels=2), await broker.connect(1)
    await client.call(1, commands.Exchange.Declare(exchange=name, exchange_type=kind), commands.Exchange.DeclareOk)
    await client.declare(name)
    spares = commands.Queue.Bind(queue=name, exchange=name, routing_key="k", arguments={"x-qpid-no-local": True})
    await client.call(1, spares, commands.Queue.BindOk)
    client.publish(b"before", "k", exchange=name)
    await client.consume(name, "c", no_ack=True)
    client.publish(b"own", "k", exchange=name, channel=2)
    client.publish(b"to the queue itself", name)
    other.publish(b"other's", "k", exchange=name)
    assert sorted(await client.bodies(3)) == [b"before", b"other's", b"to the queue itself"]
    await client.call(1, commands.Basic.Cancel(consumer_tag="c"), commands.Basic.CancelOk)
    client.publish(b"after", "k", exchange=name)
    while (await client.declare(name, passive=True)).message_count < 1:
        pass


async def test_a_binding_that_says_nothing(broker: BrokerHouse, name: str) -> None:
    """Closes the channel with 406, which names the argument."""
    client = await broker.connect()
    await client.declare(name)
    bind = commands.Queue.Bind(queue=name, exchange="amq.topic", routing_key="k", arguments={"x-qpid-no-local": "x"})
    assert await client.refused(1, bind) == 406
    assert "x-qpid-no-local" in client.of(commands.Channel.Close)[-1].reply_text
