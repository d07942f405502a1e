"""The store's disk is full: publishers of what must be kept are told, and all goes on when there is room."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio
from pamqp import commands

from services.common.disk import Room
from services.store.provider import Changes
from services.store.providers.memory import MemoryProvider
from tests.contract.gateway.test_settling import ready
from tests.support.amqp_client import AmqpClient
from tests.support.broker_house import BrokerHouse
from tests.support.programs import until

_ALL = 1000 << 20
_PERSISTENT = 2


class Disk:
    """In place of a provider's own."""

    def __init__(self, broker: BrokerHouse) -> None:
        self.found = Room(_ALL, _ALL)
        self.full = False
        engine = broker.store._engine
        self.provider: Any = engine.provider
        self._disk = engine._disk
        self._disk._room = lambda: self.found
        self._disk._shortage.first = 0  # nobody waits once there is room
        self._gateway = broker.gateways[0]._broker.unwritable
        self.provider.commit = self._commit

    async def _commit(self, changes: Changes) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        await MemoryProvider.commit(self.provider, changes)

    async def has(self, free: int) -> None:
        """There is so much room from now on; returns when the gateway knows what the store makes of it."""
        self.found = Room(free, _ALL)
        self._disk.look()
        await until(lambda: self._gateway.now is self._disk.low)


@pytest_asyncio.fixture(loop_scope="session")
async def house(tmp_path: Path) -> AsyncIterator[BrokerHouse]:
    """A broker whose store's disk is the test's to fill."""
    async with BrokerHouse(tmp_path, gateways=1, queues=1) as house:
        yield house


async def publish(client: AmqpClient, body: bytes, mode: int = _PERSISTENT) -> None:
    client.publish(body, "kept", delivery_mode=mode)
    await client.writer.drain()


def blocked(client: AmqpClient) -> Any:
    return client.of(commands.Connection.Blocked)


def unblocked(client: AmqpClient) -> Any:
    return client.of(commands.Connection.Unblocked)


async def test_publishers_that_wait_when_room_is_short(house: BrokerHouse) -> None:
    """Publishers to durable queues wait from when there is too little room; others and consumers go on, acks too."""
    disk, publisher, other = Disk(house), await house.connect(), await house.connect()
    await publisher.declare("kept", durable=True)
    await other.declare("light")
    await publish(publisher, b"before")
    assert await ready(publisher, "kept") == 1
    await disk.has(10 << 20)
    await publish(publisher, b"at the time")
    await publisher.until(lambda: blocked(publisher))
    assert blocked(publisher)[0].reason == "low on disk: 10 MiB free, 64 MiB must be"
    await publish(publisher, b"after")
    await publish(other, b"transient", mode=1)
    other.publish(b"to a queue that is not kept", "light", delivery_mode=_PERSISTENT)
    await other.consume("kept")
    assert set(await other.bodies(3)) == {b"before", b"at the time", b"transient"}
    other.send(1, commands.Basic.Ack(0, multiple=True))
    assert await ready(other, "light") == 1
    assert not blocked(other)
    await disk.has(70 << 20)
    assert not unblocked(publisher)
    await disk.has(100 << 20)
    await publisher.until(lambda: unblocked(publisher))
    assert (await other.bodies(4))[-1] == b"after"


async def test_a_publisher_that_waits_for_a_confirm_is_told(house: BrokerHouse) -> None:
    """When a commit fails, its publisher hears why before it publishes again; it is confirmed when there is room."""
    disk, publisher = Disk(house), await house.connect()
    await publisher.declare("kept", durable=True)
    await publisher.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    disk.full = True
    await publish(publisher, b"waits")
    await publisher.until(lambda: blocked(publisher))
    assert blocked(publisher)[0].reason == "cannot write: [Errno 28] No space left on device"
    assert not publisher.of(commands.Basic.Ack)
    disk.full = False
    await publisher.until(lambda: publisher.of(commands.Basic.Ack) and unblocked(publisher))


async def test_a_gateway_that_comes_later_knows(house: BrokerHouse) -> None:
    """One word of the disk is enough for each gateway, whenever it begins to follow the leases."""
    disk, client = Disk(house), await house.connect()
    await client.declare("kept", durable=True)
    await disk.has(0)
    late = await house.connect(await house.start_gateway())
    await publish(late, b"x")
    await late.until(lambda: blocked(late))
