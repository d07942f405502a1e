"""Messages for consumers that can take them at once, or for none. AMQP 0-9-1 section 1.8.3.7, `immediate`."""

from __future__ import annotations

import pytest
from pamqp import commands

from services.common.clients.queue_link import QueueLink
from tests.contract.gateway.test_settling import filled
from tests.support.amqp_client import AmqpClient, Message
from tests.support.broker_house import BrokerHouse


async def test_a_consumer_is_found_from_consume_ok_on(
    broker: BrokerHouse, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After consume-ok an immediate message reaches the consumer, though it comes through another gateway.

    It waits for no credit: the first goes with the attachment, and any other is held back here.
    """
    monkeypatch.setattr(QueueLink, "credit", lambda *_: None)
    consumer, publisher = await broker.connect(), await broker.connect(1)
    for number in range(50):
        queue = f"{name}-{number}"
        await consumer.declare(queue)
        await consumer.consume(queue, queue, no_ack=bool(number % 2))
        publisher.publish(queue.encode(), queue, immediate=True)
        await consumer.bodies(number + 1)
    assert not publisher.messages(commands.Basic.Return)


async def test_no_consumer_is_found_before(broker: BrokerHouse, name: str) -> None:
    """Without a consumer it comes back with 313."""
    client = await broker.connect()
    await client.declare(name)
    client.publish(b"1", name, immediate=True)
    assert await _returned(client) == 313


async def test_a_full_consumer_does_not_count(broker: BrokerHouse, name: str) -> None:
    """A consumer that holds what its prefetch allows cannot take it: it comes back with 313."""
    client = await filled(broker, name, 1)
    await client.prefetch(1)
    await client.consume(name)
    await client.bodies(1)
    client.publish(b"1", name, immediate=True)
    assert await _returned(client) == 313


async def test_no_delivery_overtakes_consume_ok(broker: BrokerHouse, name: str) -> None:
    """A queue that is full of messages is read after consume-ok has told the consumer's tag."""
    client = await filled(broker, name, 20)
    await client.consume(name)
    await client.bodies(20)
    kinds = [type(frame) for _, frame in client.frames]
    assert kinds.index(commands.Basic.ConsumeOk) < kinds.index(Message)


async def _returned(client: AmqpClient) -> int:
    [returned] = await client.until(lambda: client.messages(commands.Basic.Return))
    code: int = returned.method.reply_code
    return code
