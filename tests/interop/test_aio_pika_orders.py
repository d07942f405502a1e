"""aio-pika: priorities, retries by a queue in which messages expire, delays, and publishes that are tried again."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import aio_pika
import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

    from tests.support.interop_address import BrokerAddress

SECONDS = 20


@pytest.fixture
async def channel(broker: BrokerAddress) -> AsyncIterator[AbstractChannel]:
    """With confirms."""
    async with await aio_pika.connect(broker.url(), timeout=SECONDS) as connection:
        yield await connection.channel()


async def send(channel: AbstractChannel, name: str, body: bytes, **more: Any) -> None:
    """Confirmed, to the queue."""
    await channel.default_exchange.publish(aio_pika.Message(body, **more), name)


async def test_priorities(channel: AbstractChannel, name: str) -> None:
    """The highest first, those above the queue's limit as the limit, in order within one."""
    queue = await channel.declare_queue(name, exclusive=True, arguments={"x-max-priority": 5})
    for body, priority in ((b"1", 0), (b"2", 3), (b"3", 9), (b"4", 5), (b"5", 3)):
        await send(channel, name, body, priority=priority)
    messages = [await queue.get(no_ack=True) for _ in range(5)]
    assert b"".join(message.body for message in messages if message) == b"34251"


async def test_retries_after_a_while(channel: AbstractChannel, name: str) -> None:
    """The pattern for it: what is rejected waits in another queue until it expires there, and comes back counted."""
    to = {"x-dead-letter-exchange": ""}
    work = await channel.declare_queue(
        name, exclusive=True, arguments={**to, "x-dead-letter-routing-key": f"{name}-wait"}
    )
    await channel.declare_queue(
        f"{name}-wait", exclusive=True, arguments={**to, "x-dead-letter-routing-key": name, "x-message-ttl": 100}
    )
    tried: asyncio.Queue[tuple[int, float]] = asyncio.Queue()

    async def fail_twice(message: AbstractIncomingMessage) -> None:
        deaths: Any = message.headers.get("x-death", [])
        count = sum(death["count"] for death in deaths if death["queue"] == name)
        await (message.reject(requeue=False) if count < 2 else message.ack())
        tried.put_nowait((count, time.monotonic()))

    await work.consume(fail_twice)
    await send(channel, name, b"x", message_id="m")
    times = [await asyncio.wait_for(tried.get(), SECONDS) for _ in range(3)]
    assert [count for count, _ in times] == [0, 1, 2]
    assert times[2][1] - times[0][1] >= 0.2


async def test_delays(channel: AbstractChannel, name: str) -> None:
    """Of a queue that holds messages until their time: who says a delay comes later, and holds up nobody. Hopline's."""
    queue = await channel.declare_queue(name, exclusive=True, arguments={"holdOnPublishEnabled": True})
    began = time.monotonic()
    await send(channel, name, b"late", headers={"x-delay": 400})
    await send(channel, name, b"soon")
    bodies = []
    async with asyncio.timeout(SECONDS), queue.iterator(no_ack=True) as arriving:
        async for message in arriving:
            bodies.append(message.body)
            if len(bodies) == 2:
                break
    assert bodies == [b"soon", b"late"]
    assert time.monotonic() - began >= 0.4


async def test_publishes_again(channel: AbstractChannel, name: str) -> None:
    """Of a queue that takes each message once: the second try is confirmed, and is not there. Hopline's."""
    queue = await channel.declare_queue(name, exclusive=True, arguments={"x-message-deduplication": True})
    for body in (b"first", b"again"):
        await send(channel, name, body, message_id="order-1")
    await send(channel, name, b"other", message_id="order-2")
    messages = [await queue.get(no_ack=True, fail=False) for _ in range(3)]
    assert [message.body for message in messages if message] == [b"first", b"other"]
