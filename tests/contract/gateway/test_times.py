"""aio-pika publishes what expires, and what is to be delivered later; so does a client of AMQP 1.0."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import aio_pika
import pytest_asyncio

from services.common.clock import epoch_ms
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.values import Described, Symbol, Timestamp, ULong
from tests.support.amqp_1_0_client import Client
from tests.support.amqp_1_0_playbook import data
from tests.support.broker_house import BrokerHouse

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel


@pytest_asyncio.fixture(loop_scope="session")
async def channel(broker: BrokerHouse) -> AsyncIterator[AbstractChannel]:
    """With confirms."""
    connection = await aio_pika.connect(port=broker.ports[0])
    async with connection:
        yield await connection.channel()


async def publish(channel: AbstractChannel, queue: str, body: bytes, **properties: Any) -> None:
    """An `expiration` is in seconds."""
    await channel.default_exchange.publish(aio_pika.Message(body, **properties), queue)


async def count(channel: AbstractChannel, queue: str) -> int:
    """How many wait."""
    found = (await channel.declare_queue(queue, passive=True)).declaration_result.message_count
    assert found is not None
    return found


async def until_there_are(number: int, channel: AbstractChannel, queue: str) -> None:
    """Returns when so many wait; fails after a while."""
    async with asyncio.timeout(30):
        while await count(channel, queue) != number:
            await asyncio.sleep(0.02)


async def test_behind_another(channel: AbstractChannel, name: str) -> None:
    """A message expires also without consumers, and behind messages that stay."""
    queue = await channel.declare_queue(name, exclusive=True)
    await publish(channel, name, b"1")
    await publish(channel, name, b"2", expiration=1.5)
    await publish(channel, name, b"3")
    assert await count(channel, name) == 3
    await until_there_are(2, channel, name)
    assert [(await queue.get(no_ack=True)).body for _ in range(2)] == [b"1", b"3"]


async def test_a_delay(channel: AbstractChannel, name: str) -> None:
    """It counts, is not to be had before its time, and comes then by itself; others go past."""
    queue = await channel.declare_queue(name, exclusive=True, arguments={"holdOnPublishEnabled": True})
    began = epoch_ms()
    await publish(channel, name, b"late", headers={"x-delay": 1500})
    await publish(channel, name, b"later", headers={"x-qpid-not-valid-before": began + 600_000})
    assert await count(channel, name) == 2
    assert await queue.get(no_ack=True, fail=False) is None
    await publish(channel, name, b"now")
    async with queue.iterator(no_ack=True) as messages:
        assert (await anext(messages)).body == b"now"
        assert (await anext(messages)).body == b"late"
    assert epoch_ms() >= began + 1490
    assert await count(channel, name) == 1


async def test_a_delivery_time(broker: BrokerHouse, channel: AbstractChannel, name: str) -> None:
    """AMQP 1.0's annotation, in a queue that holds; another delivers at once."""
    holding = await channel.declare_queue(name, arguments={"holdOnPublishEnabled": True})
    other = await channel.declare_queue(f"{name}-other")
    client, moment = Client(), epoch_ms() + 500
    await client.open(broker.ports[0], "guest", "guest", "/")
    for queue in (name, f"{name}-other"):
        await client.sends_to(f"/queues/{queue}")
        said = {Symbol("x-opt-delivery-time"): Timestamp(moment)}
        await client.sends(encode(Described(ULong(0x72), said)) + data(b"x"))
    assert await other.get(no_ack=True, fail=False) is not None
    async with holding.iterator(no_ack=True) as messages:
        await anext(messages)
    assert epoch_ms() >= moment
    await client.close()
    await holding.delete()
    await other.delete()
