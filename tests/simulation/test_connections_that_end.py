"""What goes with a connection, on virtual time, when nobody was there to hear that it ended."""

from __future__ import annotations

import asyncio

import pytest

from tests.simulation.test_loop import begin
from tests.simulation.world import Shape, World
from tests.support.amqp_client import AmqpClient

_SMALL = Shape(gateways=1, routers=1, queue_processes=1, partitions=1)
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
