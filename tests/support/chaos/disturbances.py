"""What is done to a running stack, one thing at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from tests.support.chaos.account import CUT, KILL, PAUSE, POWER_OFF, SCALE_DOWN, SCALE_UP, Disturbance

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from random import Random

    from tests.support.chaos.containers import ContainerStack

Deck = tuple[tuple[str, tuple[str, ...]], ...]

LEASE_SECONDS = 2.0  # as docker-compose.yml has it
MOST_QUEUES, LEAST_QUEUES = 4, 2

# A pause and a cut meet any service, most often the one that holds leases.
DECK = (
    (KILL, ("queue",)),
    (KILL, ("store",)),
    (KILL, ("router",)),
    (KILL, ("gateway",)),
    (KILL, ("nats",)),
    (PAUSE, ("queue", "queue", "queue", "store", "router", "gateway")),
    (CUT, ("queue", "queue", "queue", "store", "router", "gateway", "nats")),
    (POWER_OFF, ("store", "queue", "router", "gateway")),
    (SCALE_UP, ("queue",)),
    (SCALE_DOWN, ("queue",)),
)


def choices(random: Random, more: Deck = ()) -> Iterator[tuple[str, str]]:
    """Kinds and services without end: all kinds in some order, then all in another; `more` of what is drawn from."""
    deck = (*DECK, *more)
    while True:
        for kind, services in random.sample(deck, len(deck)):
            yield kind, random.choice(services)


class Disturber:
    """Carries disturbances out; `note` is told of each as it begins, and its end is written into it."""

    def __init__(self, stack: ContainerStack, random: Random, note: Callable[[Disturbance], None]) -> None:
        self._stack = stack
        self._random = random
        self._note = note
        self._now = asyncio.get_running_loop().time

    async def disturb(self, kind: str, service: str) -> None:
        """Returns when it is undone."""
        if kind in {SCALE_UP, SCALE_DOWN}:
            await self._scale(kind)
            return
        target = self._random.choice(self._stack.names(service))
        disturbance = Disturbance(kind, target, self._now())
        self._note(disturbance)
        # Drawn whether it is used or not: the same seed gives the same run, whatever the containers do.
        await self._KINDS[kind](self, target, self._random.random())
        disturbance.ended = self._now()

    async def _kill(self, target: str, moment: float) -> None:
        await asyncio.to_thread(self._stack.kill, target)
        await asyncio.sleep(3 * moment)
        await asyncio.to_thread(self._stack.revive, target)

    async def _pause(self, target: str, moment: float) -> None:
        await asyncio.to_thread(self._stack.pause, target)
        await asyncio.sleep(LEASE_SECONDS * (1.5 + moment))
        await asyncio.to_thread(self._stack.resume, target)

    async def _cut(self, target: str, moment: float) -> None:
        undo = await asyncio.to_thread(self._stack.cut, target)
        await asyncio.sleep(LEASE_SECONDS * (0.5 + 2 * moment))
        await asyncio.to_thread(undo)

    async def _power_off(self, target: str, moment: float) -> None:
        """No peer hears from its kernel that it is dead."""
        undo = await asyncio.to_thread(self._stack.cut, target)
        try:
            await self._kill(target, moment)
        finally:
            await asyncio.to_thread(undo)

    _KINDS: ClassVar[dict[str, Callable[[Disturber, str, float], Awaitable[None]]]] = {
        KILL: _kill,
        PAUSE: _pause,
        CUT: _cut,
        POWER_OFF: _power_off,
    }

    async def _scale(self, kind: str) -> None:
        queues = self._stack.names("queue")
        if kind == SCALE_UP and len(queues) == MOST_QUEUES:
            kind = SCALE_DOWN
        elif kind == SCALE_DOWN and len(queues) == LEAST_QUEUES:
            kind = SCALE_UP
        target = self._random.choice(queues)
        disturbance = Disturbance(kind, target if kind == SCALE_DOWN else "queue", self._now())
        self._note(disturbance)
        if kind == SCALE_UP:
            disturbance.target = await asyncio.to_thread(self._stack.scale_up)
        else:
            await asyncio.to_thread(self._stack.scale_down, target)
        disturbance.ended = self._now()
