"""Empties queues, and writes down what each says that it has, what it gives, and what is left then."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pamqp import commands

from tests.simulation.channel import Channel
from tests.simulation.choices import DEFAULT_FILTERS, NONDESTRUCTIVE, TIMEOUT
from tests.simulation.client import Address, Client
from tests.simulation.history import Consuming, Delivered, History
from tests.simulation.line import GoneError
from tests.simulation.plan import Plan

PATIENCE = 120.0  # seconds in which a virtual host's have to be empty, and five more for each
_QUIET = 3.0  # seconds without a delivery after which a queue has nothing more to give
_ROUNDS = 6
_NOT_FOUND = 404


class Emptying:
    """Of a history. Queues whose consumers take nothing, not all, or lose what they keep for long, are emptied by
    basic.get.
    """

    def __init__(self, history: History, plan: Plan, addresses: Sequence[Address], gateways: Sequence[str]) -> None:
        self._history = history
        self._addresses = addresses
        self._gateways = gateways
        self._got = _with(plan, NONDESTRUCTIVE) | _with(plan, TIMEOUT) | _with(plan, DEFAULT_FILTERS)

    async def all(self) -> None:
        """Every queue that was declared, until nothing comes any more."""
        declared = [asked for asked in self._history.asked if asked.what in {"queue", "subscribe"}]
        queues = list(dict.fromkeys((asked.host, asked.arguments["queue"]) for asked in declared))
        for number in range(_ROUNDS):
            before = len(self._history.deliveries)
            await self._empty_all(queues, number)
            if len(self._history.deliveries) == before:
                break
            await asyncio.sleep(2)

    async def _empty_all(self, queues: list[tuple[str, str]], number: int) -> None:
        for host in dict.fromkeys(host for host, _ in queues):
            name = f"drain-{host}-{number}"
            client = Client(self._history, name, host, self._addresses, number, self._gateways)
            mine = [queue for its, queue in queues if its == host]
            try:
                async with asyncio.timeout(PATIENCE + 5 * len(mine)):
                    await self._empty_host(client, mine)
            except TimeoutError:
                self._history.stuck.append(f"queues of {host} could not be emptied")

    async def _empty_host(self, client: Client, queues: list[str]) -> None:
        said: dict[str, int] = {}
        for queue in queues:
            # Before any of them is touched: nothing moves now.
            try:
                channel = await client.channel({"channel": "count"})
                answer = await channel.call(commands.Queue.Declare(0, queue, True))
                said[queue] = answer.message_count
            except GoneError:
                self._history.counts.append((client.host, queue, -1, 0, 0))
        for queue, count in said.items():
            try:
                await self.drain(await client.channel({"channel": queue}), queue, count)
            except GoneError as gone:
                if gone.code == _NOT_FOUND:
                    self._history.counts.append((client.host, queue, -1, 0, 0))
                else:
                    self._history.stuck.append(f"queue {queue} could not be emptied: {gone}")
        await (await client.connected()).close()

    async def drain(self, channel: Channel, queue: str, said: int | None = None) -> None:
        """Takes all that a queue has; `said` is how many it said that it has."""
        if said is None:
            said = await _count(channel, queue)
        host = channel.wire.connected.host
        got = await (
            _get_all(channel, queue) if (host, queue) in self._got else self._consume_all(channel, queue, said)
        )
        if channel.unsettled:
            channel.settle("ack", next(reversed(channel.unsettled)), multiple=True)
        if channel.consumers:
            await channel.call(commands.Basic.Cancel("drain"))
            channel.consumers.clear()
        self._history.counts.append((host, queue, said, got, await _count(channel, queue)))

    async def _consume_all(self, channel: Channel, queue: str, said: int) -> int:
        host, history = channel.wire.connected.host, self._history
        more, got = asyncio.Event(), 0

        def take(channel: Channel, delivered: Delivered) -> None:
            nonlocal got
            delivered.draining = True
            got += 1
            more.set()

        consuming = Consuming(host, queue, "drain", channel.opened, False, False, history.tick())
        history.consumers.append(consuming)
        channel.consumers["drain"] = (consuming, take)
        await channel.call(commands.Basic.Consume(0, queue, "drain"))
        consuming.attached = history.tick()
        try:
            while True:
                async with asyncio.timeout(_QUIET if got < said else 0.1):
                    await more.wait()
                more.clear()
        except TimeoutError:
            return got


def _with(plan: Plan, argument: str) -> set[tuple[str, str]]:
    """Virtual hosts and names of queues that are declared with it."""
    return {
        (step["host"], step["queue"])
        for step in plan.topology
        if step["do"] == "queue" and argument in step.get("arguments", {})
    }


async def _get_all(channel: Channel, queue: str) -> int:
    channel.getting, got = (queue, False), 0
    while isinstance(answer := await channel.call(commands.Basic.Get(0, queue)), tuple):
        answer[1].draining = True
        got += 1
    return got


async def _count(channel: Channel, queue: str) -> int:
    return int((await channel.call(commands.Queue.Declare(0, queue, True))).message_count)
