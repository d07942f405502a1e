"""A client that asks for thousands of things in one go is answered, and costs no more memory than one that waits."""

from __future__ import annotations

import asyncio

from pamqp import commands

from tests.support.amqp_playbook import written
from tests.support.broker_house import BrokerHouse

_MANY = 3000
_WAITING = 2 << 20  # bytes


async def test_thousands_of_requests_at_once(broker: BrokerHouse, name: str) -> None:
    """All are answered; while some wait, the others are not even looked at, and another client is served in between."""
    client, other = await broker.connect(), await broker.connect()
    await client.declare(name)
    declared = len(client.of(commands.Queue.DeclareOk))
    most, turns = 0, 0
    client.writer.write(written(1, commands.Queue.Declare(queue=name, passive=True)) * _MANY)
    while len(client.of(commands.Queue.DeclareOk)) < declared + _MANY:
        connections = broker.gateways[0]._listener._connections
        most = max(most, *(connection.waiting for connection in connections))
        await asyncio.wait_for(other.declare(name, passive=True), 10)
        turns += 1
    assert 0 < most < _WAITING
    assert turns > _MANY / 1000
