"""A queue with x-single-active-consumer whose owner changes, on virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pamqp import commands

from services.common.topology.slots import SlotName
from tests.simulation.test_loop import begin
from tests.simulation.world import Shape, World
from tests.support.amqp_client import AmqpClient

QUEUE = "q"
GATEWAYS = ("gateway-1", "gateway-2")


class Stage:
    """Two consumers at two gateways, the first of which is the active one; twenty messages, five at a time."""

    def __init__(self) -> None:
        self.world = World(1, Shape(queue_processes=2))
        self.cluster = self.world.cluster
        self.active: AmqpClient
        self.other: AmqpClient

    async def prepare(self, gateway: str) -> None:
        """The active one is at this gateway."""
        await self.cluster.start()
        [its] = set(GATEWAYS) - {gateway}
        self.active = await begin(self.world, "client-1", self._consumer(gateway))
        self.other = await begin(self.world, "client-2", self._consumer(its))
        await begin(self.world, "client-2", self._publish())
        await asyncio.sleep(1)

    async def _consumer(self, gateway: str) -> AmqpClient:
        client = AmqpClient()
        await client.open(dict(self.cluster.amqp_addresses)[gateway], host=gateway)
        await client.declare(QUEUE, durable=True, arguments={"x-single-active-consumer": True})
        await client.prefetch(5)
        await client.consume(QUEUE)
        return client

    async def _publish(self) -> None:
        await self.other.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
        for number in range(20):
            self.other.publish(b"%d" % number, QUEUE, delivery_mode=2)
        await self.other.confirmed(20, seconds=20)

    def seen(self) -> tuple[list[int], list[int]]:
        """What the two have got so far."""
        first, second = ([int(message.body) for message in each.messages()] for each in (self.active, self.other))
        return first, second

    def owner(self) -> str:
        number = self.cluster.service("gateway-1")._broker.topology.by_name[SlotName("/", QUEUE)].partition
        for name in ("queue-1", "queue-2"):
            partition = self.cluster.service(name)._host.registry.partitions.get(number)
            if partition is not None and partition.state.name == "SERVING":
                return name
        return ""

    async def move(self) -> None:
        number = self.cluster.service("gateway-1")._broker.topology.by_name[SlotName("/", QUEUE)].partition
        [heir] = {"queue-1", "queue-2"} - {self.owner()}
        self.cluster.move(number, heir)
        while self.owner() != heir:
            await asyncio.sleep(0.01)

    async def kill(self) -> None:
        self.cluster.kill(self.owner())
        await asyncio.sleep(5)

    async def tear(self) -> None:
        for gateway in GATEWAYS:
            self.cluster.tear(gateway, self.owner())

    def play(self, history: Any) -> None:
        self.world.run(history)


@pytest.mark.parametrize("gateway", GATEWAYS)
@pytest.mark.parametrize("change", ["move", "kill", "tear"])
def test_the_active_consumer_stays_active(change: str, gateway: str) -> None:
    """Until it is cancelled; then the other one gets the rest. What it holds stays its own, also with a new owner."""
    stage = Stage()

    async def history() -> None:
        await stage.prepare(gateway)
        await getattr(stage, change)()
        await asyncio.sleep(3)
        assert stage.seen() == ([0, 1, 2, 3, 4], [])
        stage.active.ack(5, multiple=True)
        await asyncio.sleep(1)
        assert stage.seen() == (list(range(10)), [])
        await begin(stage.world, "client-1", stage.active.call(1, commands.Basic.Cancel("c"), commands.Basic.CancelOk))
        stage.active.ack(10, multiple=True)
        await asyncio.sleep(1)
        assert stage.seen() == (list(range(10)), list(range(10, 15)))

    stage.play(history())
    assert stage.world.faults == []


def test_the_next_by_age_after_a_move() -> None:
    """The active one goes together with the owner: of those that are left the eldest is next."""
    stage = Stage()

    async def history() -> None:
        await stage.prepare("gateway-1")
        third = await begin(stage.world, "client-3", stage._consumer("gateway-1"))
        stage.active.abort()
        await stage.move()
        await asyncio.sleep(3)
        assert (stage.seen()[1], third.messages()) == ([0, 1, 2, 3, 4], [])

    stage.play(history())
