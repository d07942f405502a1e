"""When a change of the topology is answered, every gateway routes by it. Design, section 6."""

from __future__ import annotations

import asyncio

import pytest
from pamqp import commands

from tests.support.amqp_client import AmqpClient, Message
from tests.support.broker_house import BrokerHouse

Queue, Exchange = commands.Queue, commands.Exchange
SELECTOR = "x-filter-jms-selector"


async def test_no_publish_after_bind_ok_misses_the_binding(broker: BrokerHouse, name: str) -> None:
    """While keys are bound and unbound, publishes on both gateways arrive after bind-ok, and not after unbind-ok."""
    binder = await broker.connect()
    publishers = [await broker.connect(0), await broker.connect(1)]
    await binder.call(1, Exchange.Declare(exchange=name, exchange_type="direct"), Exchange.DeclareOk)
    await binder.declare(name)
    churn = asyncio.get_running_loop().create_task(_churn(await broker.connect(1), name))
    for publisher in publishers:
        await publisher.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    for number in range(30):
        key = f"key-{number % 3}"
        await binder.call(1, Queue.Bind(queue=name, exchange=name, routing_key=key), Queue.BindOk)
        assert await _returned(publishers, name, key) == 0
        await binder.call(1, Queue.Unbind(queue=name, exchange=name, routing_key=key), Queue.UnbindOk)
        assert await _returned(publishers, name, key) == 2
    churn.cancel()
    assert (await binder.declare(name, passive=True)).message_count == 60


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
async def test_selectors(broker: BrokerHouse, name: str, kind: str) -> None:
    """x-filter-jms-selector, of a queue and of an exchange that are bound: each message goes by what it says itself."""
    client, other = await broker.connect(), await broker.connect(1)
    for exchange, its in ((name, kind), (f"{name}-2", "fanout")):
        await client.call(1, Exchange.Declare(exchange=exchange, exchange_type=its), Exchange.DeclareOk)
    await client.declare(name)
    await client.declare(f"{name}-2")
    bind = Queue.Bind(queue=name, exchange=name, routing_key="k", arguments={SELECTOR: "JMSPriority > 5"})
    await client.call(1, bind, Queue.BindOk)
    red = {SELECTOR: "colour = 'red'"}
    on = Exchange.Bind(source=name, destination=f"{name}-2", routing_key="k", arguments=red)
    await client.call(1, on, Exchange.BindOk)
    await client.call(1, Queue.Bind(queue=f"{name}-2", exchange=f"{name}-2", routing_key=""), Queue.BindOk)
    for queue in (name, f"{name}-2"):
        await client.consume(queue, queue, no_ack=True)
    for body, priority, colour in ((b"1", 6, "red"), (b"2", 5, "red"), (b"3", 6, "blue"), (b"4", 1, "blue")):
        other.publish(body, "k", exchange=name, priority=priority, headers={"colour": colour})
    other.publish(b"end", name)
    other.publish(b"end", f"{name}-2")
    await client.bodies(6)
    came = {
        queue: [m.body for m in client.messages() if m.method.consumer_tag == queue] for queue in (name, f"{name}-2")
    }
    assert came == {name: [b"1", b"3", b"end"], f"{name}-2": [b"1", b"2", b"end"]}


async def test_what_is_no_selector(broker: BrokerHouse, name: str) -> None:
    """Closes the channel with 406, which names the argument."""
    client = await broker.connect()
    await client.declare(name)
    for said in ("colour =", 5):
        bind = Queue.Bind(queue=name, exchange="amq.topic", routing_key="k", arguments={SELECTOR: said})
        assert await client.refused(1, bind) == 406
    assert all(SELECTOR in close.reply_text for close in client.of(commands.Channel.Close))


async def _returned(publishers: list[AmqpClient], exchange: str, key: str) -> int:
    """How many of one message from each come back."""
    before = sum(len(each.messages(commands.Basic.Return)) for each in publishers)
    confirms = [len(each.of(commands.Basic.Ack)) for each in publishers]
    for each in publishers:
        each.publish(b"x", key, exchange=exchange, mandatory=True)
    for each, count in zip(publishers, confirms, strict=True):
        await each.until(lambda each=each, count=count: len(each.of(commands.Basic.Ack)) > count)  # type: ignore[misc]
    return sum(len(each.messages(commands.Basic.Return)) for each in publishers) - before


async def _churn(client: AmqpClient, exchange: str) -> None:
    await client.declare(exchange + "-other")
    number = 0
    while True:
        number += 1
        queue, key = exchange + "-other", f"other-{number % 7}"
        await client.call(1, Queue.Bind(queue=queue, exchange=exchange, routing_key=key), Queue.BindOk)
        await client.call(1, Queue.Unbind(queue=queue, exchange=exchange, routing_key=key), Queue.UnbindOk)


async def test_a_queue_is_reached_from_every_gateway_after_declare_ok(broker: BrokerHouse, name: str) -> None:
    """A publish to the default exchange on another gateway, right after declare-ok, is not returned."""
    first, second = await broker.connect(0), await broker.connect(1)
    for number in range(20):
        queue = f"{name}-{number}"
        second.publish(b"early", queue, mandatory=True)
        await first.declare(queue)
        second.publish(b"x", queue, mandatory=True)
        message = None
        while message is None or message.body == b"early":
            message = await second.get(queue, no_ack=True)
    assert not [m for m in second.messages(commands.Basic.Return) if m.body == b"x"]


async def test_replies_go_from_one_gateway_to_another(broker: BrokerHouse, name: str) -> None:
    """Direct reply-to: the requester on one gateway hears the responder on the other."""
    requester, responder = await broker.connect(0), await broker.connect(1)
    await responder.declare(name)
    await responder.consume(name, no_ack=True)
    await requester.consume("amq.rabbitmq.reply-to", no_ack=True)
    requester.publish(b"question", name, reply_to="amq.rabbitmq.reply-to", correlation_id="7")
    await responder.bodies(1)
    request = responder.messages()[0]
    passive = await responder.declare(request.properties.reply_to, passive=True)
    assert passive.consumer_count == 1
    responder.publish(b"answer", request.properties.reply_to, correlation_id="7")
    assert await requester.bodies(1) == [b"answer"]


async def test_addresses_of_replies_cannot_be_guessed(broker: BrokerHouse, name: str) -> None:
    """A client that knows one reply address cannot guess the next, not even of the same channel."""
    client, tokens = await broker.connect(), []
    await client.declare(name)
    for _ in range(2):
        await client.consume("amq.rabbitmq.reply-to", "a", no_ack=True)
        client.publish(b"question", name, reply_to="amq.rabbitmq.reply-to")
        request = await client.call(1, commands.Basic.Get(queue=name, no_ack=True), Message)
        tokens.append(request.properties.reply_to.rpartition(".")[2])
        await client.call(1, commands.Basic.Cancel("a"), commands.Basic.CancelOk)
    assert all(len(token) >= 22 for token in tokens)  # 128 bits in base64
    assert tokens[0] != tokens[1]


async def test_a_reply_consumer_can_be_cancelled_and_made_again(broker: BrokerHouse) -> None:
    """A second reply consumer on a channel is refused, one after basic.cancel is not."""
    client = await broker.connect()
    await client.consume("amq.rabbitmq.reply-to", "a", no_ack=True)
    await client.call(1, commands.Basic.Cancel("a"), commands.Basic.CancelOk)
    await client.consume("amq.rabbitmq.reply-to", "b", no_ack=True)
    again = commands.Basic.Consume(queue="amq.rabbitmq.reply-to", consumer_tag="c", no_ack=True)
    assert await client.refused(1, again) == 406


async def test_a_request_without_a_reply_consumer_is_refused(broker: BrokerHouse, name: str) -> None:
    """A publish with reply_to amq.rabbitmq.reply-to and no reply consumer closes the channel with 406."""
    client = await broker.connect()
    client.publish(b"x", name, reply_to="amq.rabbitmq.reply-to")
    assert (await client.expect(commands.Channel.Close)).reply_code == 406
