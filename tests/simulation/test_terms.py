"""A partition that goes to another process and comes back, while a gateway hears its owners late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pamqp import commands

from services.common.topology.slots import SlotName
from tests.simulation.test_loop import begin
from tests.simulation.world import Shape, World
from tests.support.amqp_client import AmqpClient, Message

QUEUE = "q"
PROCESSES = ("queue-1", "queue-2")
SECONDS = 8.0  # in which everything has come that will come


class Stage:
    """One queue. Its reader is at gateway-1, which hears late; its publishers are at gateway-2."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed, Shape(queue_processes=2))
        self.cluster = self.world.cluster
        self.acknowledged: list[bytes] = []
        self.held = self.ready = 0  # in the end, as its owner believes

    def play(self, reader: Callable[[], Any], history: Callable[[], Any]) -> None:
        """Returns when the history is over and all messages have been seen."""

        async def scenario() -> None:
            await self.cluster.start()
            await begin(self.world, "client-2", self._declare())
            reading = begin(self.world, "client-1", reader())
            await asyncio.sleep(0.5)
            await history()
            await reading
            self.held, self.ready = self._held(), self._ready()

        self.world.run(scenario())

    async def client(self, gateway: str) -> AmqpClient:
        client = AmqpClient()
        await client.open(dict(self.cluster.amqp_addresses)[gateway], host=gateway)
        return client

    async def _declare(self) -> None:
        await (await self.client("gateway-2")).declare(QUEUE, durable=True)

    async def publish(self, *bodies: bytes, gateway: str = "gateway-2") -> None:
        """Returns when they are confirmed."""

        async def publishing() -> None:
            client = await self.client(gateway)
            await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
            for tag, body in enumerate(bodies, 1):
                client.publish(body, QUEUE, delivery_mode=2)
                await client.confirmed(tag, seconds=20)

        await begin(self.world, "client-2", publishing())

    async def acknowledge(self, client: AmqpClient, message: Message) -> None:
        """With a later answer on the channel, so that it counts."""
        client.ack(message.tag)
        await client.declare(QUEUE, durable=True)
        self.acknowledged.append(message.body)

    async def nobody(self) -> None:
        """Leaves everything where it is, until all has come that will."""
        await asyncio.sleep(SECONDS)

    async def consumer(self) -> None:
        """Acknowledges all that comes."""
        client = await self.client("gateway-1")
        await client.consume(QUEUE, "c")
        seen, until = 0, self.world.time() + SECONDS
        while self.world.time() < until:
            for message in client.messages()[seen:]:
                seen += 1
                await self.acknowledge(client, message)
            await asyncio.sleep(0.02)

    async def refuser(self) -> None:
        """Gives the first delivery back, by words that its owner hears late, and keeps the second one for a while."""
        client, until = await self.client("gateway-1"), self.world.time() + SECONDS
        await client.call(1, commands.Basic.Qos(prefetch_count=1), commands.Basic.QosOk)
        await client.consume(QUEUE, "c")
        first = (await client.until(client.messages))[0]
        self.cluster.deafen(self.owner(), "gateway-1", SECONDS)
        client.send(1, commands.Basic.Nack(first.tag))
        await client.until(lambda: client.messages()[1:])
        await asyncio.sleep(4)
        for message in client.messages()[1:]:
            await self.acknowledge(client, message)
        await asyncio.sleep(until - self.world.time())
        self.acknowledged += [message.body for message in client.messages()[2:]]

    async def getter(self) -> None:
        """Asks for one after the other, and acknowledges them."""
        client, until = await self.client("gateway-1"), self.world.time() + SECONDS
        await asyncio.sleep(1)
        while self.world.time() < until:
            client.send(1, commands.Basic.Get(queue=QUEUE, no_ack=False))
            got = await client.expect((Message, commands.Basic.GetEmpty), seconds=20)
            if isinstance(got, Message):
                await self.acknowledge(client, got)
            await asyncio.sleep(0.5)

    @property
    def partition(self) -> int:
        number: int = self.cluster.service("gateway-1")._broker.topology.by_name[SlotName("/", QUEUE)].partition
        return number

    def owner(self, state: str = "SERVING") -> str:
        """The process that serves the queue, or has it in another state; none if there is none."""
        for name in PROCESSES:
            partition = self.cluster.service(name)._host.registry.partitions.get(self.partition)
            if partition is not None and partition.state.name == state:
                return name
        return ""

    async def move(self, state: str = "SERVING") -> None:
        """To the other process; returns when that serves, or is so far."""
        [other] = set(PROCESSES) - {self.owner()}
        self.cluster.move(self.partition, other)
        while self.owner(state) != other:
            await asyncio.sleep(0.01)

    def lose_owner(self) -> None:
        """It loses its leases for want of the store; what gateway-1 says to it comes when it may have them again."""
        owner = self.owner()
        self.cluster.deafen(owner, "gateway-1", 5.5)
        self.cluster.cut(owner, "store-1", 2)

    async def come_back(self) -> None:
        """Gives the partition to that process again, before it hears what gateway-1 said."""
        await asyncio.sleep(1.5)
        await self.move()

    def _held(self) -> int:
        return sum(len(queue.unsettled) for queue in self._queues())

    def _ready(self) -> int:
        return sum(queue.ready_count for queue in self._queues())

    def _queues(self) -> list[Any]:
        return list(self.cluster.service(self.owner())._host.registry.partitions[self.partition].queues.values())


@pytest.mark.parametrize(("fault", "seconds"), [("deafen", 4.5), ("cut", 3.2)])
def test_a_partition_that_comes_back(fault: str, seconds: float) -> None:
    """What its owner said in a former term comes last: acknowledged is not seen again, and all that follows comes."""
    stage = Stage(1)

    async def history() -> None:
        getattr(stage.cluster, fault)("gateway-1", stage.owner(), seconds)
        await stage.publish(b"first")
        await stage.move()
        await asyncio.sleep(0.2)
        await stage.move()
        await stage.publish(*(b"%d" % number for number in range(5)))

    stage.play(stage.consumer, history)
    assert sorted(stage.acknowledged) == [b"0", b"1", b"2", b"3", b"4", b"first"]
    assert not stage.held


def test_an_answer_of_a_former_owner() -> None:
    """What basic.get took of a former owner is not shown to its client: the next one gives it, to one alone."""
    stage = Stage(1)

    async def history() -> None:
        await stage.publish(b"first")
        await asyncio.sleep(0.3)
        stage.cluster.deafen("gateway-1", stage.owner(), 4.5)
        await asyncio.sleep(0.4)
        await stage.move()

    stage.play(stage.getter, history)
    assert stage.acknowledged == [b"first"]
    assert not stage.held


def test_what_was_given_back_in_a_former_term() -> None:
    """Another consumer gets it and keeps it; once that has acknowledged it, it is not seen any more."""
    stage = Stage(1)

    async def history() -> None:
        first, network = stage.owner(), stage.world.network
        await stage.publish(b"first")
        await asyncio.sleep(0.3)
        await stage.move()
        await asyncio.sleep(0.3)
        await stage.move("RECOVERING")
        await asyncio.sleep(0.3)
        network.link(network.host(first), network.host("gateway-1")).heal()

    stage.play(stage.refuser, history)
    assert stage.acknowledged == [b"first"]
    assert not stage.held


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_was_published_in_a_former_term(seed: int) -> None:
    """It comes back to a process that has the partition again, from an owner in between: it is there once."""
    stage = Stage(seed)

    async def history() -> None:
        stage.lose_owner()
        await stage.publish(b"first", gateway="gateway-1")
        await stage.come_back()

    stage.play(stage.nobody, history)
    assert (stage.ready, stage.held) == (1, 0)


def test_what_is_asked_in_a_former_term() -> None:
    """A purge that comes late empties no queue that was filled since it was answered."""
    stage = Stage(1)

    async def purge() -> None:
        client = await stage.client("gateway-1")
        await client.call(1, commands.Queue.Purge(queue=QUEUE), commands.Queue.PurgeOk, seconds=20)

    async def history() -> None:
        stage.lose_owner()
        await begin(stage.world, "client-1", purge())
        await stage.publish(b"since then")
        await stage.come_back()

    stage.play(stage.nobody, history)
    assert (stage.ready, stage.held) == (1, 0)
