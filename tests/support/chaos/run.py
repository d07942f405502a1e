"""One chaos run: load, disturbances, and what became of every message."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from tests.support.chaos import write_audit
from tests.support.chaos.account import Account, Disturbance
from tests.support.chaos.clients import Client, Consumer, Door, Producer, count_left
from tests.support.chaos.disturbances import Disturber, choices

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.chaos.containers import ContainerStack

QUEUES = 50
CLIENTS = 10  # producers, and as many consumers; each has its share of the queues
SECOND_CONSUMERS = 5  # of whose queues there are two consumers, through two gateways
EVERY_SECONDS = 10.0
SETTLE_SECONDS = 60.0
QUIET_SECONDS = 1.0  # for what comes too often


@dataclass(frozen=True, slots=True)
class Plan:
    """What HOPLINE_CHAOS_SECONDS and HOPLINE_CHAOS_SEED say."""

    seconds: float = field(default_factory=lambda: float(os.environ.get("HOPLINE_CHAOS_SECONDS", "90")))
    seed: int = field(default_factory=lambda: int(os.environ.get("HOPLINE_CHAOS_SEED") or secrets.randbelow(10**6)))


class ChaosRun:
    """Over when `run` returns: then nothing happens any more, and `account` is complete."""

    def __init__(self, stack: ContainerStack, plan: Plan, say: Callable[[str], None]) -> None:
        self.account = Account()
        self.began = asyncio.get_running_loop().time()
        self._stack = stack
        self._plan = plan
        self._say = say
        self._queues = [f"chaos-{number}" for number in range(QUEUES)]
        self._producers: list[Producer] = []
        self._consumers: list[Consumer] = []

    async def run(self) -> None:
        """Raises TimeoutError when producers or consumers do not get to an end."""
        await asyncio.to_thread(write_audit.install, self._stack)
        self._start_clients()
        await asyncio.sleep(EVERY_SECONDS / 2)
        await self._disturb()
        await self._finish()
        self.account.left_over = await count_left(self._stack.doors[0], self._queues)
        writings = await asyncio.to_thread(write_audit.read, self._stack)
        self.account.writings, self.account.refused_writes = writings

    def _start_clients(self) -> None:
        for number in range(CLIENTS):
            queues, doors = self._queues[number::CLIENTS], self._doors(number)
            self._producers.append(Producer(f"producer-{number}", queues, doors, self.account))
            self._consume(number, queues, self._doors(number // 2))
        for number in range(SECOND_CONSUMERS):
            self._consume(CLIENTS + number, self._queues[number::CLIENTS], self._doors(number // 2 + 1))

    def _consume(self, number: int, queues: list[str], doors: list[Door]) -> None:
        random = Random(self._plan.seed + number)
        self._consumers.append(Consumer(f"consumer-{number}", queues, doors, self.account, random))

    def _doors(self, first: int) -> list[Door]:
        doors = self._stack.doors
        return [doors[(first + number) % len(doors)] for number in range(len(doors))]

    async def _disturb(self) -> None:
        random = Random(self._plan.seed)
        disturber = Disturber(self._stack, random, self._note)
        begins = asyncio.get_running_loop().time()
        end = begins + self._plan.seconds
        for kind, service in choices(random, self._stack.kept.deck):
            if begins >= end:
                return
            await disturber.disturb(kind, service)
            begins = max(begins + EVERY_SECONDS, asyncio.get_running_loop().time())
            await asyncio.sleep(begins - asyncio.get_running_loop().time())

    def _note(self, disturbance: Disturbance) -> None:
        self.account.disturbances.append(disturbance)
        confirmed = sum(message.confirmed is not None for message in self.account.messages.values())
        clock = time.strftime("%H:%M:%S")
        self._say(f"{clock} {disturbance.began - self.began:7.1f}  {disturbance!s:<24} ({confirmed} confirmed)")

    async def _finish(self) -> None:
        clients: list[Client] = [*self._producers, *self._consumers]
        async with asyncio.timeout(SETTLE_SECONDS):
            await asyncio.gather(*(producer.stop() for producer in self._producers))
        give_up = asyncio.get_running_loop().time() + SETTLE_SECONDS
        while self._missing() and asyncio.get_running_loop().time() < give_up:
            await asyncio.sleep(0.1)
        await asyncio.sleep(QUIET_SECONDS)
        async with asyncio.timeout(SETTLE_SECONDS):
            await asyncio.gather(*(client.stop() for client in clients))

    def _missing(self) -> bool:
        messages = self.account.messages.values()
        return any(message.confirmed is not None and not message.deliveries for message in messages)
