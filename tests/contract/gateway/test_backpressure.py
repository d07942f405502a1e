"""The socket decides over the backlog, and queues over what is read (design, section 3)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from pamqp import commands

from services.gateway.consumer import WINDOW_BYTES
from tests.contract.gateway.test_settling import ready
from tests.support.amqp_client import AmqpClient
from tests.support.broker_house import BrokerHouse

_SOCKETS = 12 << 20  # what loopback sockets and the reader's own buffer may hold at most


@pytest_asyncio.fixture(loop_scope="session")
async def small(tmp_path: Path) -> AsyncIterator[BrokerHouse]:
    """A broker whose queue process has 4 MB for messages."""
    house = BrokerHouse(tmp_path, gateways=1, queues=1, queue_memory=4 << 20)
    await house.start()
    yield house
    await house.stop()


async def test_a_consumer_that_does_not_read_stops_only_itself(broker: BrokerHouse, name: str) -> None:
    """Beside a stuck consumer of the same gateway another one goes on; what was sent to the stuck one is bounded."""
    size, count = 16 << 10, 4000  # 64 MB
    stuck, reader, publisher = [await broker.connect() for _ in range(3)]
    for queue in (name, name + "-2"):
        await publisher.declare(queue)
    await stuck.consume(name, no_ack=True)
    await reader.consume(name + "-2", no_ack=True)
    stuck.stop_reading()
    for _ in range(count):
        publisher.publish(b"x" * size, name)
        await publisher.writer.drain()
    for _ in range(500):
        publisher.publish(b"y" * size, name + "-2")
    await reader.bodies(500)
    remaining = await ready(publisher, name)
    assert (count - remaining) * size < WINDOW_BYTES + _SOCKETS
    stuck.read_on()
    await stuck.bodies(count, seconds=30)


async def test_sessions_share_a_socket_fairly(broker: BrokerHouse, name: str) -> None:
    """Two channels of a connection that reads slowly get about as much each, though one began long before."""
    client = await broker.connect(channels=2)
    publisher = await broker.connect()
    for queue in (name, name + "-2"):
        await publisher.declare(queue)
        for _ in range(1500):
            publisher.publish(b"x" * 16384, queue)
            await publisher.writer.drain()
    await client.consume(name, "a", channel=1, no_ack=True)
    await client.consume(name + "-2", "b", channel=2, no_ack=True)
    client.stop_reading()
    await asyncio.sleep(0.3)
    client.read_on()
    await client.until(lambda: len(client.messages()) >= 2000, 30)
    counts = [len(client.messages(channel=channel)) for channel in (1, 2)]
    assert min(counts) > 500, counts
    await client.until(lambda: len(client.messages()) == 3000, 30)


async def test_publishers_are_blocked_while_memory_is_short(small: BrokerHouse) -> None:
    """connection.blocked comes when a queue process is full, no more is read, and unblocked when consumers drained."""
    publisher, consumer = await small.connect(), await small.connect()
    await consumer.declare("q")
    sending = asyncio.get_running_loop().create_task(_send(publisher, 2500))
    await publisher.until(lambda: publisher.of(commands.Connection.Blocked))
    await asyncio.sleep(0.5)
    held = await ready(consumer, "q")
    await asyncio.sleep(0.3)
    assert await ready(consumer, "q") == held < 2000
    await consumer.consume("q", no_ack=True)
    await consumer.bodies(2500, seconds=30)
    await sending
    await publisher.until(lambda: publisher.of(commands.Connection.Unblocked))


async def _send(client: AmqpClient, count: int) -> None:
    for _ in range(count):
        client.publish(b"x" * 8192, "q")
        await client.writer.drain()


async def test_gets_wait_for_a_peer_that_does_not_read(broker: BrokerHouse, name: str) -> None:
    """Pipelined basic.get without reading takes no more from the queue than the socket can hold."""
    client = await broker.connect()
    await client.declare(name)
    for _ in range(1000):
        client.publish(b"x" * 50_000, name)
        await client.writer.drain()
    assert await ready(client, name) == 1000
    client.stop_reading()
    for _ in range(1000):
        client.send(1, commands.Basic.Get(queue=name, no_ack=True))
    await asyncio.sleep(1)
    assert await ready(await broker.connect(), name) > 1000 - _SOCKETS // 50_000
    client.read_on()
    await client.until(lambda: len(client.messages(commands.Basic.GetOk)) == 1000, 30)


async def test_a_silent_client_is_cut_and_an_idle_one_hears_beats(broker: BrokerHouse) -> None:
    """With heartbeat 1 a client that sends nothing hears beats, and is cut after two seconds. Section 4.2.7."""
    began = time.monotonic()
    client = await broker.connect(heartbeat=1)
    await client.until(lambda: client.closed)
    assert 1.5 < time.monotonic() - began < 4
    assert sum(type(value).__name__ == "Heartbeat" for _, value in client.frames) >= 2


async def test_a_held_client_is_not_cut_for_silence(small: BrokerHouse) -> None:
    """While a connection is not read, what it may have sent is not missed."""
    publisher, consumer = await small.connect(heartbeat=1), await small.connect()
    await consumer.declare("q")
    sending = asyncio.get_running_loop().create_task(_send(publisher, 2500))
    await publisher.until(lambda: publisher.of(commands.Connection.Blocked))
    await asyncio.sleep(3.5)
    assert not publisher.closed
    await consumer.consume("q", no_ack=True)
    await consumer.bodies(2500, seconds=30)
    await sending
