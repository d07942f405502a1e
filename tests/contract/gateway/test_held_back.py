"""aio-pika publishes to a queue with Broker-J's overflow policy PRODUCER_FLOW_CONTROL."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aio_pika
import pytest
from pamqp import commands

from tests.support.broker_house import BrokerHouse

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel

_SOON = 0.5
_AT_LAST = 30


async def publish_many(channel: AbstractChannel, name: str) -> None:
    """Raises TimeoutError when one of them is not confirmed soon."""
    for _ in range(50):
        async with asyncio.timeout(_SOON):
            await channel.default_exchange.publish(aio_pika.Message(b"x"), name)


async def commit_many(channel: AbstractChannel, name: str) -> None:
    """The same of transactions."""
    for _ in range(50):
        async with asyncio.timeout(_SOON), channel.transaction():
            await channel.default_exchange.publish(aio_pika.Message(b"x"), name)


async def test_until_consumers_have_made_room(broker: BrokerHouse, name: str) -> None:
    """One message more than the queue wants is taken; soon the publisher waits, and goes on when there is room."""
    arguments = {"x-max-length": 1, "qpid.policy_type": "PRODUCER_FLOW_CONTROL"}
    async with (
        await aio_pika.connect(port=broker.ports[0]) as publishing,
        await aio_pika.connect(port=broker.ports[0]) as consuming,
    ):
        channel = await publishing.channel()
        await channel.declare_queue(name, arguments=arguments)
        with pytest.raises(TimeoutError):
            await publish_many(channel, name)
        queue = await (await consuming.channel()).get_queue(name)
        assert (await queue.purge()).message_count in range(2, 50)
        async with asyncio.timeout(_AT_LAST):
            await channel.default_exchange.publish(aio_pika.Message(b"x"), name)
        await queue.delete(if_empty=False)


async def test_with_transactions(broker: BrokerHouse, name: str) -> None:
    """What is committed is taken; soon the publisher waits, and so does one that publishes without."""
    arguments = {"x-max-length": 1, "qpid.policy_type": "PRODUCER_FLOW_CONTROL"}
    async with (
        await aio_pika.connect(port=broker.ports[0]) as publishing,
        await aio_pika.connect(port=broker.ports[0]) as other,
        await aio_pika.connect(port=broker.ports[0]) as consuming,
    ):
        channel = await publishing.channel(publisher_confirms=False)
        await channel.declare_queue(name, arguments=arguments)
        with pytest.raises(TimeoutError):
            await commit_many(channel, name)
        with pytest.raises(TimeoutError):
            await publish_many(await other.channel(), name)
        queue = await (await consuming.channel()).get_queue(name)
        assert (await queue.purge()).message_count in range(2, 50)
        await queue.delete(if_empty=False)


async def test_it_is_told_why(broker: BrokerHouse, name: str) -> None:
    """That memory is short is not the only reason."""
    client = await broker.connect()
    await client.declare(name, arguments={"x-max-length": 1, "qpid.policy_type": "PRODUCER_FLOW_CONTROL"})
    while not (blocked := client.of(commands.Connection.Blocked)):
        client.publish(b"x", name)
        await asyncio.sleep(0.01)
    assert "a queue has more than it wants" in blocked[0].reason
