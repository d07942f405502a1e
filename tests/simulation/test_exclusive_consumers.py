"""A queue with an exclusive consumer whose gateway goes away, and perhaps comes back, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from pamqp import commands

from tests.simulation.test_loop import begin
from tests.simulation.world import Shape, World
from tests.support.amqp_client import AmqpClient

QUEUE = "q"
MOMENT = 1.0  # that a gateway has to come back


class Stage:
    """One queue process, a consumer at gateway-1, and a client at gateway-2 that will be one."""

    def __init__(self) -> None:
        self.world = World(1, Shape(queue_processes=1))
        self.cluster = self.world.cluster
        self.first: AmqpClient
        self.other: AmqpClient

    def play(self, history: Callable[[], Coroutine[Any, Any, None]], *, exclusive: bool) -> None:
        """`exclusive`: the first one is that."""

        async def scenario() -> None:
            await self.cluster.start()
            self.first = await self._client(1)
            await begin(self.world, "client-1", self.first.consume(QUEUE, exclusive=exclusive))
            self.other = await self._client(2)
            await asyncio.sleep(0.5)
            await history()

        self.world.run(scenario())
        assert self.world.faults == []

    async def _client(self, number: int) -> AmqpClient:
        async def opened() -> AmqpClient:
            client, gateway = AmqpClient(), f"gateway-{number}"
            await client.open(dict(self.cluster.amqp_addresses)[gateway], host=gateway)
            await client.declare(QUEUE, durable=True)
            return client

        return await begin(self.world, f"client-{number}", opened())

    async def asks(self, *, exclusive: bool) -> tuple[int, float]:
        """What the other one is told that wants to be a consumer, 0 if it is one; and after how many seconds."""
        began, consume = self.world.time(), commands.Basic.Consume(queue=QUEUE, exclusive=exclusive)
        self.other.send(1, consume)
        answer = await self.other.expect((commands.Basic.ConsumeOk, commands.Channel.Close), seconds=60)
        code = answer.reply_code if isinstance(answer, commands.Channel.Close) else 0
        return code, self.world.time() - began

    async def away(self) -> None:
        """Until the consumer of gateway-1 is not there any more for the queue process."""
        [queue] = self.cluster.service("queue-1")._host.registry.queues.values()
        while len(queue.consumers):
            await asyncio.sleep(0.001)


@pytest.mark.parametrize(("was", "asks"), [(True, False), (False, True), (True, True)])
def test_a_stream_that_breaks(was: bool, asks: bool) -> None:
    """The former consumer is attached again a moment later: no other is let in beside it."""
    stage = Stage()

    async def history() -> None:
        stage.cluster.tear("gateway-1", "queue-1")
        await stage.away()
        assert (await stage.asks(exclusive=asks))[0] == 403

    stage.play(history, exclusive=was)


def test_streams_that_break_while_no_process_is_sure() -> None:
    """The queue process is sure of its leases again, and gateways come back: the one that has the consumer last."""
    stage = Stage()

    async def history() -> None:
        stage.cluster.cut("queue-1", "store-1", 4)
        await asyncio.sleep(3)
        stage.cluster.slow("queue-1", "gateway-1", 4)
        assert (await stage.asks(exclusive=True))[0] == 403

    stage.play(history, exclusive=False)


def test_a_gateway_that_dies() -> None:
    """Its client is let in at another gateway as soon as it is certain that the former consumer does not come back."""
    stage = Stage()

    async def history() -> None:
        stage.cluster.kill("gateway-1")
        await stage.away()
        code, seconds = await stage.asks(exclusive=True)
        assert (code, seconds < MOMENT + 0.2) == (0, True)

    stage.play(history, exclusive=True)


def test_no_consumer_is_exclusive() -> None:
    """Then no consumer has to wait."""
    stage = Stage()

    async def history() -> None:
        stage.cluster.tear("gateway-1", "queue-1")
        await stage.away()
        code, seconds = await stage.asks(exclusive=False)
        assert (code, seconds < 0.05) == (0, True)

    stage.play(history, exclusive=False)
