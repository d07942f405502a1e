"""Virtual hosts come and go while the stack runs."""

from __future__ import annotations

import pytest
from pamqp import commands

from services.common.clients.virtual_hosts import VirtualHostsClient
from services.common.errors import NotFound
from tests.support.broker_house import BrokerHouse


async def test_a_virtual_host_that_was_added_is_there_for_clients(broker: BrokerHouse, name: str) -> None:
    """Clients can open it on every gateway once it is added, with exchanges of its own, and not after it is deleted."""
    async with VirtualHostsClient(broker.address_of("router")) as hosts:
        await hosts.create(name)
        assert name in await hosts.list()
        for gateway in (0, 1):
            client = await broker.connect(gateway, virtual_host=name)
            await client.declare("q")
        with pytest.raises(NotFound):
            await hosts.delete(name + "-none")
        await hosts.delete(name)
        assert await hosts.list() == ["/"]
    late = await broker.connect(virtual_host=name)
    assert late.of(commands.Connection.Close)[0].reply_code == 530


async def test_the_end_of_a_virtual_host_ends_its_connections(broker: BrokerHouse, name: str) -> None:
    """On every gateway its clients are told connection.close 320, and those of other virtual hosts notice nothing."""
    async with VirtualHostsClient(broker.address_of("router")) as hosts:
        await hosts.create(name)
        clients = [await broker.connect(gateway, virtual_host=name) for gateway in (0, 1)]
        other = await broker.connect(1)
        await clients[0].declare("q")
        await clients[1].consume("q")
        await hosts.delete(name)
    for client in clients:
        assert (await client.expect(commands.Connection.Close)).reply_code == 320
    await other.declare(name, exclusive=True)
    assert not other.of(commands.Connection.Close)
    await clients[1].until(lambda: clients[1].closed)
