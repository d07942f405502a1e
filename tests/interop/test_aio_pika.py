"""aio-pika: an asyncio application with publisher confirms, robust reconnection, dead letters, transactions and RPC."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import aio_pika
import pytest
from aio_pika.exceptions import ChannelPreconditionFailed, DeliveryError, ProbableAuthenticationError
from aio_pika.patterns import RPC

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aio_pika.abc import AbstractConnection, AbstractIncomingMessage, AbstractQueue

    from tests.support.interop_address import BrokerAddress
from tests.support.interop_proxy import Proxy

SECONDS = 20


@pytest.fixture
async def aio_connection(broker: BrokerAddress) -> AsyncIterator[AbstractConnection]:
    """A plain connection."""
    async with await aio_pika.connect(broker.url(), timeout=SECONDS) as connection:
        yield connection


async def take(queue: AbstractQueue, count: int) -> list[AbstractIncomingMessage]:
    """The next `count` messages, acknowledged."""
    messages = []
    async with asyncio.timeout(SECONDS), queue.iterator() as arriving:
        async for message in arriving:
            await message.ack()
            messages.append(message)
            if len(messages) == count:
                break
    return messages


async def test_concurrent_confirmed_publishes(aio_connection: AbstractConnection, name: str) -> None:
    """Hundreds of publishes that wait for their confirms at once are all confirmed and arrive."""
    channel = await aio_connection.channel(publisher_confirms=True)
    await channel.set_qos(prefetch_count=20)
    queue = await channel.declare_queue(name, durable=True)
    persistent = aio_pika.DeliveryMode.PERSISTENT
    await asyncio.gather(
        *[
            channel.default_exchange.publish(aio_pika.Message(str(number).encode(), delivery_mode=persistent), name)
            for number in range(500)
        ]
    )
    messages = await take(queue, 500)
    assert sorted(int(message.body) for message in messages) == list(range(500))
    await queue.delete(if_unused=False, if_empty=False)


async def test_mandatory_without_route(aio_connection: AbstractConnection, name: str) -> None:
    """A mandatory publish without a route raises at the publisher."""
    channel = await aio_connection.channel(on_return_raises=True)
    with pytest.raises(DeliveryError):
        await channel.default_exchange.publish(aio_pika.Message(b"x"), name, mandatory=True)


async def test_headers_keep_their_types(aio_connection: AbstractConnection, name: str) -> None:
    """Headers that this library encodes, floats among them, come back as they were."""
    headers: dict[str, Any] = {
        "float": 0.5,
        "integer": 1 << 33,
        "text": "ü",
        "time": datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC),
        "list": [1, "two", None, True],
        "table": {"a": {"b": 2.5}},
    }
    channel = await aio_connection.channel()
    queue = await channel.declare_queue(name, exclusive=True)
    await channel.default_exchange.publish(aio_pika.Message(b"", headers=headers), name)
    [message] = await take(queue, 1)
    assert message.headers == headers


async def test_rejected_to_the_dead_letter_exchange(aio_connection: AbstractConnection, name: str) -> None:
    """A message whose processing fails goes to the dead-letter queue with x-death."""
    channel = await aio_connection.channel()
    dead = await channel.declare_queue(f"{name}-dead", exclusive=True)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.name}
    queue = await channel.declare_queue(name, exclusive=True, arguments=arguments)
    await channel.default_exchange.publish(aio_pika.Message(b"poison"), name)
    message = await queue.get(timeout=SECONDS)
    with pytest.raises(ValueError, match="poison"):
        async with message.process(requeue=False):
            raise ValueError("poison")
    [letter] = await take(dead, 1)
    assert letter.body == b"poison"
    assert letter.headers["x-death"][0]["reason"] == "rejected"


async def test_transaction(aio_connection: AbstractConnection, name: str) -> None:
    """What a rolled back transaction published never was; what a committed one did is there."""
    channel = await aio_connection.channel(publisher_confirms=False)
    queue = await channel.declare_queue(name, exclusive=True)
    rolled_back = channel.transaction()
    await rolled_back.select()
    await channel.default_exchange.publish(aio_pika.Message(b"lost"), name)
    await rolled_back.rollback()
    async with channel.transaction():
        await channel.default_exchange.publish(aio_pika.Message(b"kept"), name)
    channel = await aio_connection.channel()
    assert [message.body for message in await take(await channel.get_queue(queue.name), 1)] == [b"kept"]


async def test_rpc(aio_connection: AbstractConnection, name: str) -> None:
    """The library's RPC pattern (exclusive reply queue, headers exchange for dead letters) works."""
    channel = await aio_connection.channel()
    rpc = await RPC.create(channel)

    async def multiply(*, x: int, y: int) -> int:
        return x * y

    await rpc.register(name, multiply, auto_delete=True)
    results = await asyncio.gather(*[rpc.call(name, {"x": number, "y": number}) for number in range(20)])
    assert results == [number * number for number in range(20)]
    await rpc.close()


async def test_error_closes_the_channel_only(aio_connection: AbstractConnection, name: str) -> None:
    """A declaration with other properties raises, and the connection goes on."""
    channel = await aio_connection.channel()
    await channel.declare_queue(name, exclusive=True)
    with pytest.raises(ChannelPreconditionFailed):
        await channel.declare_queue(name, exclusive=True, arguments={"x-max-length": 1})
    other = await aio_connection.channel()
    await other.declare_queue(name, exclusive=True)


async def test_robust_connection_comes_back(broker: BrokerAddress, name: str) -> None:
    """After its socket breaks, a robust connection declares again, binds again and consumes on."""
    async with Proxy.running(broker) as proxy:
        connection = await aio_pika.connect_robust(proxy.address.url(), timeout=SECONDS, reconnect_interval=0.1)
        async with connection:
            channel = await connection.channel()
            exchange = await channel.declare_exchange(name, "topic", auto_delete=True)
            queue = await channel.declare_queue(name, auto_delete=True)
            await queue.bind(exchange, "a.#")
            received: asyncio.Queue[bytes] = asyncio.Queue()

            async def on_message(message: AbstractIncomingMessage) -> None:
                await received.put(message.body)

            await queue.consume(on_message, no_ack=True)
            await exchange.publish(aio_pika.Message(b"before"), "a.b")
            assert await asyncio.wait_for(received.get(), SECONDS) == b"before"
            reconnected = asyncio.Event()
            connection.reconnect_callbacks.add(lambda *_: reconnected.set())
            proxy.cut()
            await asyncio.wait_for(reconnected.wait(), SECONDS)
            await exchange.publish(aio_pika.Message(b"after"), "a.b")
            assert await asyncio.wait_for(received.get(), SECONDS) == b"after"


async def test_wrong_credentials(broker: BrokerAddress) -> None:
    """Wrong credentials raise what the library has for them."""
    with pytest.raises(ProbableAuthenticationError):
        await aio_pika.connect(broker.url(password="wrong"), timeout=SECONDS)
