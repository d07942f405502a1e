"""Processes come back at each other's addresses while a gateway lives (a wrong peer is no peer)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio
from pamqp import commands

from tests.contract.gateway.test_settling import ready
from tests.support.amqp_client import AmqpClient
from tests.support.broker_house import BrokerHouse

_QUEUES = [f"q{number}" for number in range(8)]
_EACH = 6


@pytest_asyncio.fixture(loop_scope="session")
async def house(tmp_path: Path) -> AsyncIterator[BrokerHouse]:
    async with BrokerHouse(tmp_path, gateways=1, queues=2) as house:
        yield house


async def publisher_of(house: BrokerHouse) -> AmqpClient:
    """Durable queues over both queue processes, with messages 0, 1, …"""
    client = await house.connect()
    for name in _QUEUES:
        await client.declare(name, durable=True)
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    publish(client, range(_EACH))
    await client.confirmed(_EACH * len(_QUEUES))
    return client


def publish(client: AmqpClient, numbers: Any) -> None:
    for number in numbers:
        for name in _QUEUES:
            client.publish(b"%s %d" % (name.encode(), number), name, delivery_mode=2)


async def test_clients_notice_a_pause(house: BrokerHouse) -> None:
    """Declares, binds, publishes, acks and consumes are done meanwhile, and no client gets an error."""
    publisher = await publisher_of(house)
    consumer = await house.connect()
    await consumer.prefetch(2)
    for name in _QUEUES:
        await consumer.consume(name, name)
    await consumer.bodies(2 * len(_QUEUES))
    await house.fall()
    await house.occupy()
    coming = asyncio.create_task(house.come_back())
    declaring = await house.connect()
    declaring.send(1, commands.Queue.Declare(queue="late"))
    declaring.send(1, commands.Queue.Bind(queue="late", exchange="amq.topic", routing_key="a.#"))
    publish(publisher, range(_EACH, 2 * _EACH))
    for message in consumer.messages():
        consumer.ack(message.tag)
    await declaring.expect(commands.Queue.BindOk, seconds=30)
    publisher.publish(b"new route", "a.b", exchange="amq.topic")
    await publisher.confirmed(2 * _EACH * len(_QUEUES) + 1, seconds=30)
    await coming
    seen = 2 * len(_QUEUES)
    while seen < 2 * _EACH * len(_QUEUES):
        await consumer.bodies(seen + 1, seconds=30)
        for message in consumer.messages()[seen:]:
            consumer.ack(message.tag)
            seen += 1
    got = [message.body for message in consumer.messages()]
    assert sorted(got) == sorted(b"%s %d" % (name.encode(), at) for name in _QUEUES for at in range(2 * _EACH))
    found = await declaring.get("late", no_ack=True)
    assert found is not None
    assert found.body == b"new route"
    assert [await ready(declaring, name) for name in _QUEUES] == [0] * len(_QUEUES)
