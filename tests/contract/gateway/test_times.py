"""aio-pika publishes what expires, and counts what is left of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import aio_pika
import pytest_asyncio

from tests.support.broker_house import BrokerHouse

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel


@pytest_asyncio.fixture(loop_scope="session")
async def channel(broker: BrokerHouse) -> AsyncIterator[AbstractChannel]:
    """With confirms."""
    connection = await aio_pika.connect(port=broker.ports[0])
    async with connection:
        yield await connection.channel()


async def publish(channel: AbstractChannel, queue: str, *bodies: bytes, expiration: float | None = None) -> None:
    """`expiration` is in seconds."""
    for body in bodies:
        message = aio_pika.Message(body, expiration=expiration)
        await channel.default_exchange.publish(message, queue)


async def count(channel: AbstractChannel, queue: str) -> int:
    """How many wait."""
    found = (await channel.declare_queue(queue, passive=True)).declaration_result.message_count
    assert found is not None
    return found


async def until_there_are(number: int, channel: AbstractChannel, queue: str) -> None:
    """Returns when so many wait; fails after a while."""
    for _ in range(200):
        if await count(channel, queue) == number:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{await count(channel, queue)} wait, not {number}")


async def test_behind_another(channel: AbstractChannel, name: str) -> None:
    """What expires goes though nobody consumes, and though what is before it stays."""
    queue = await channel.declare_queue(name, exclusive=True)
    await publish(channel, name, b"1")
    await publish(channel, name, b"2", expiration=0.3)
    await publish(channel, name, b"3")
    assert await count(channel, name) == 3
    await until_there_are(2, channel, name)
    assert [(await queue.get(no_ack=True)).body for _ in range(2)] == [b"1", b"3"]
