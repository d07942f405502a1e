"""What ends with a connection, on virtual time, when no process was there to notice its end."""

from __future__ import annotations

import asyncio

import pytest

from services.common.topology.slots import SlotName
from tests.simulation.test_loop import begin
from tests.simulation.world import Shape, World
from tests.support.amqp_client import AmqpClient

_SMALL = Shape(gateways=1, routers=1, queue_processes=1, partitions=1, queue_memory=1 << 20)
_AWAY = 70.0  # seconds: twice as long as a gateway waits for an answer


async def _client(world: World) -> AmqpClient:
    host, port = world.cluster.amqp_addresses[0]
    client = AmqpClient()
    await client.open(port, host=host)
    return client


async def _declare(world: World) -> AmqpClient:
    client = await _client(world)
    await client.declare("mine", exclusive=True)
    return client


@pytest.mark.parametrize("away", ["router-1", "store-1"])
def test_exclusive_queues_while_no_router_can_delete_them(away: str) -> None:
    """They go with their connection all the same, though that takes longer than a gateway waits for an answer."""
    world = World(1, _SMALL)

    async def scenario() -> None:
        await world.cluster.start()
        client = await begin(world, "client-1", _declare(world))
        world.cluster.kill(away)
        client.abort()
        await asyncio.sleep(_AWAY)
        await world.cluster.heal()
        await asyncio.sleep(5)
        await begin(world, "client-2", _declare(world))

    world.run(scenario())
    assert world.faults == []


async def _publish(world: World, count: int) -> None:
    client = await _client(world)
    await client.declare("full", durable=True)
    for _ in range(count):
        client.publish(bytes(64 << 10), "full")
        await asyncio.sleep(0.05)
    client.abort()


def test_publishers_that_leave_while_a_queue_is_full() -> None:
    """Nothing is kept of a client that was told to wait and has gone, while the others wait on."""
    world = World(1, _SMALL)

    async def scenario() -> None:
        await world.cluster.start()
        await begin(world, "client-1", _publish(world, 40))
        for _ in range(5):
            await begin(world, "client-1", _publish(world, 1))
        await asyncio.sleep(1)
        publisher = world.cluster.service("gateway-1")._broker.publisher
        assert all(link.full or link.full_everywhere for link in publisher._links.values())
        assert not len(publisher._held)

    world.run(scenario())
    assert world.faults == []


async def _consume(world: World, *, no_ack: bool = False) -> AmqpClient:
    client = await _client(world)
    await client.declare("q", auto_delete=True)
    await client.consume("q", "c", no_ack=no_ack)
    return client


def _is_there(world: World) -> bool:
    return SlotName("/", "q") in world.cluster.service("gateway-1")._broker.topology.by_name


def test_auto_delete_queues_without_an_owner() -> None:
    """They are deleted with their last consumer, also if it ends while they have no owner: the next owner is told."""
    world = World(1, _SMALL)

    async def scenario() -> None:
        await world.cluster.start()
        client = await begin(world, "client-1", _consume(world))
        world.cluster.kill("queue-1")
        await asyncio.sleep(0.3)
        await client.close()
        await world.cluster.heal()
        assert _is_there(world)
        await asyncio.sleep(60)
        assert not _is_there(world)

    world.run(scenario())
    assert world.faults == []


def test_auto_delete_queues_that_are_still_used() -> None:
    """They stay for the consumers that come again, and go with the last of them."""
    world = World(1, _SMALL)

    async def scenario() -> None:
        await world.cluster.start()
        leaves = await begin(world, "client-1", _consume(world))
        stays = await begin(world, "client-2", _consume(world, no_ack=True))
        world.cluster.kill("queue-1")
        await asyncio.sleep(0.3)
        await leaves.close()
        await world.cluster.heal()
        await asyncio.sleep(60)
        assert _is_there(world)
        await stays.close()
        await asyncio.sleep(1)
        assert not _is_there(world)

    world.run(scenario())
    assert world.faults == []
