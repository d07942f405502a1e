from __future__ import annotations

import asyncio

import pytest
from pamqp import commands

from tests.simulation.test_loop import begin
from tests.simulation.world import Shape, World
from tests.support.amqp_client import AmqpClient

QUEUES = 4
_AGAIN = (AssertionError, OSError, TimeoutError)  # the connection is gone


class Load:
    """Publishes with confirms and consumes, on connections that are made again when they break."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.confirmed: list[bytes] = []
        self.received: list[bytes] = []
        self._turn = 0

    async def connect(self) -> AmqpClient:
        """To one gateway after the other."""
        addresses = self.world.cluster.amqp_addresses
        self._turn += 1
        host, port = addresses[self._turn % len(addresses)]
        client = AmqpClient()
        async with asyncio.timeout(10):
            await client.open(port, host=host)
        return client

    async def declare(self) -> None:
        client = await self.connect()
        for number in range(QUEUES):
            await client.declare(f"q{number}", durable=True)
        await client.close()

    async def publish(self, count: int) -> None:
        """Returns when all of them are confirmed."""
        left = [b"%d" % number for number in range(count)]
        while left:
            try:
                client = await self.connect()
                await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
                for tag, body in enumerate(list(left), 1):
                    client.publish(body, f"q{self.world.random.randrange(QUEUES)}", delivery_mode=2)
                    await client.confirmed(tag, seconds=30)
                    self.confirmed.append(left.pop(0))
                    await asyncio.sleep(self.world.random.random() * 0.05)
            except _AGAIN:
                await asyncio.sleep(0.2)

    async def consume(self) -> None:
        """Until everything that was confirmed has come."""
        while True:
            try:
                client = await self.connect()
                for number in range(QUEUES):
                    await client.consume(f"q{number}", f"c{number}")
                seen = 0
                while not client.closed:
                    messages = client.messages()
                    for message in messages[seen:]:
                        self.received.append(message.body)
                        client.ack(message.tag)
                    seen = len(messages)
                    await asyncio.sleep(0.05)
            except _AGAIN:
                await asyncio.sleep(0.2)


def played(seed: int, *, faults: int, shape: Shape | None = None) -> tuple[World, Load]:
    """A history of 40 messages and so many faults; all has been received when it ends."""
    world = World(seed, shape)
    load = Load(world)

    async def scenario() -> None:
        await world.cluster.start()
        await load.declare()
        begin(world, "client-1", load.consume())
        publishing = begin(world, "client-2", load.publish(40))
        for _ in range(faults):
            await asyncio.sleep(world.random.random() * 0.2)
            disturb(world)
        await world.cluster.heal()
        await publishing
        while not set(load.confirmed) <= set(load.received) or any(world.cluster.memory_accounts().values()):
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)  # the ledger is told of what happened last

    world.run(scenario())
    return world, load


def disturb(world: World) -> None:
    """One of all faults."""
    draw, cluster = world.random, world.cluster
    names, seconds = [*cluster.processes, "client-1", "client-2"], draw.random() * 2
    a, b, process = draw.choice(names), draw.choice(names), draw.choice(cluster.processes)
    draw.choice(
        [
            lambda: cluster.kill(process),
            lambda: cluster.stop(process),
            lambda: cluster.start_again(process),
            lambda: cluster.pause(process, seconds),
            lambda: cluster.starve(process, seconds),
            lambda: cluster.cut(a, b, seconds),
            lambda: cluster.tear(a, b),
            lambda: cluster.slow(a, b, seconds),
            lambda: cluster.disk_full(seconds),
            lambda: cluster.disk_low(seconds),
            lambda: cluster.disk_fails(seconds),
            lambda: cluster.disk_slow(seconds),
            lambda: cluster.jump_clock(process, draw.uniform(-5000, 5000)),
            lambda: cluster.suspend(seconds),
            lambda: cluster.move(draw.randrange(6), "queue-1"),
        ]
    )()


def test_a_quiet_history() -> None:
    """The whole broker starts, and carries confirmed messages to a consumer; the ledger tells of all of them."""
    world, load = played(1, faults=0)
    assert sorted(load.received) == sorted(load.confirmed)
    rows = list(world.cluster.ledger().rows())
    settled = [uid for row in rows if row.stage == "settled" for uid in row.uids]
    assert {"received", "enqueued", "persisted", "delivered", "sent"} <= {row.stage for row in rows}
    assert len(set(settled)) == len(settled) == len(load.confirmed)
    assert world.complaints == []


@pytest.mark.parametrize("seed", range(4))
def test_the_same_history_twice(seed: int) -> None:
    """A seed gives the same history twice, with any faults."""
    (one, _), (other, _) = played(seed, faults=25), played(seed, faults=25)
    assert one.digest() == other.digest()
    assert one.time() == other.time()


def test_another_history() -> None:
    """Another seed gives another one."""
    assert played(1, faults=0)[0].digest() != played(2, faults=0)[0].digest()


def test_the_ledger_is_filed() -> None:
    """mgmt's filer runs in the world too: what it has filed leaves NATS."""
    world = World(1, Shape(filing=True))

    async def scenario() -> None:
        await world.cluster.start()
        await Load(world).declare()
        while not world.cluster.unfiled():
            await asyncio.sleep(0.1)
        while world.cluster.unfiled():
            await asyncio.sleep(0.1)

    world.run(scenario())
    assert world.faults == []


def test_more_queue_processes() -> None:
    """A queue process that is added serves its share; one that is stopped for good leaves it to the others."""
    world = World(1)

    async def scenario() -> None:
        cluster = world.cluster
        await cluster.start()
        name = cluster.add_queue_process()
        await cluster.heal()
        assert cluster.is_running(name)
        cluster.stop_for_good("queue-1")
        await cluster.heal()
        assert not cluster.is_running("queue-1")

    world.run(scenario())
