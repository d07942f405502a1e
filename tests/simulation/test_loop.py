from __future__ import annotations

import asyncio
import os
import random
import time
import uuid
from collections.abc import Coroutine
from typing import Any

import pytest

from services.common import clock
from tests.simulation.standing_still import interrupted
from tests.simulation.world import Deadlock, OutOfTime, World
from tests.simulation.world.processes import PROCESS


def process_of(world: World, name: str) -> Any:
    return world.network.hosts[name].process


def begin(world: World, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    with world.host(name):
        return asyncio.get_running_loop().create_task(work)


def test_time_is_virtual() -> None:
    """A task that sleeps for a day has slept for a day, by the loop and by the clocks, in no real time."""
    world = World(1)

    async def sleep() -> tuple[float, float]:
        began, wall = clock.monotonic(), time.time()
        await asyncio.sleep(86400)
        return clock.monotonic() - began, time.time() - wall

    world_before = time.monotonic()
    passed, wall = World(1, limit=1e6).run(sleep())
    assert passed == pytest.approx(86400, rel=1e-4)
    assert wall == pytest.approx(86400, rel=1e-4)
    assert time.monotonic() - world_before < 86400
    with pytest.raises(OutOfTime):
        world.run(sleep())


def test_nothing_to_wait_for() -> None:
    """A scenario that waits for what can never come is told so."""

    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock):
        World(1).run(wait())


def test_order_within_a_process() -> None:
    """Callbacks of one process run in the order in which they were asked for."""
    seen: list[int] = []

    async def ask() -> None:
        for number in range(5):
            asyncio.get_running_loop().call_soon(seen.append, number)
        await asyncio.sleep(0)

    World(3).run(ask())
    assert seen == [0, 1, 2, 3, 4]


def _race(seed: int) -> list[str]:
    world, order = World(seed), []

    async def run(name: str) -> None:
        order.append(name)

    async def all_at_once() -> None:
        await asyncio.gather(*(begin(world, f"client-{number}", run(f"client-{number}")) for number in range(6)))

    world.run(all_at_once())
    return order


def test_order_of_processes() -> None:
    """Which process has its turn first depends on the seed, and on nothing else."""
    orders = [_race(seed) for seed in range(8)]
    assert orders == [_race(seed) for seed in range(8)]
    assert len({tuple(order) for order in orders}) > 1


def test_standing_still() -> None:
    """A process that stands still does nothing; then it does all that was due."""
    world, ticks = World(1), []

    async def tick() -> None:
        while True:
            await asyncio.sleep(1)
            ticks.append(world.time())

    async def watch() -> None:
        begin(world, "client-1", tick())
        await asyncio.sleep(2.5)
        world.loop.hold(process_of(world, "client-1"))
        await asyncio.sleep(5)
        assert len(ticks) == 2
        world.loop.release(process_of(world, "client-1"))
        await asyncio.sleep(0.1)
        assert len(ticks) == 3

    world.run(watch())


def test_death() -> None:
    """A process that is killed does nothing any more, not even on its way out."""
    world, effects = World(1), []

    async def live() -> None:
        try:
            while True:
                await asyncio.sleep(1)
                effects.append("lived")
        finally:
            effects.append("parted")

    async def watch() -> None:
        begin(world, "client-1", live())
        await asyncio.sleep(2.5)
        process_of(world, "client-1").die()
        await asyncio.sleep(10)
        assert effects == ["lived", "lived"]

    world.run(watch())


def test_sleep_of_the_machine() -> None:
    """While the machine sleeps timers stand still, and the clock that leases are held by goes on."""
    world, seen = World(1), []

    async def sleep() -> None:
        began = clock.monotonic()
        await asyncio.sleep(1)
        seen.append(clock.monotonic() - began)

    async def watch() -> None:
        begin(world, "client-1", sleep())
        await asyncio.sleep(0.5)
        process = process_of(world, "client-1")
        world.loop.put_to_sleep(process, 10)
        await asyncio.sleep(10)
        assert not seen
        await asyncio.sleep(1)
        assert seen == [pytest.approx(11, rel=1e-3)]

    world.run(watch())


@pytest.mark.parametrize(("woken_after", "slept"), [(None, 10), (3, 3)])
def test_sleep_that_is_said_again(woken_after: float | None, slept: float) -> None:
    """A machine that sleeps does not fall asleep again: it sleeps to the last moment that was said, or is woken."""
    world, seen = World(1), []

    async def note() -> None:
        await asyncio.sleep(1)
        seen.append(True)

    async def watch() -> None:
        begin(world, "client-1", note())
        await asyncio.sleep(0.5)
        process = process_of(world, "client-1")
        for seconds in (8, 10, 9):
            world.loop.put_to_sleep(process, seconds)
        if woken_after:
            await asyncio.sleep(woken_after)
            world.loop.awaken(process)
        await asyncio.sleep(slept - (woken_after or 0) + 0.4)
        assert not seen
        await asyncio.sleep(0.2)
        assert seen

    world.run(watch())


def _draw(seed: int) -> tuple[Any, ...]:
    async def draw() -> tuple[Any, ...]:
        return uuid.uuid4(), os.urandom(8), random.random(), random.SystemRandom().random(), time.time_ns()

    return World(seed).run(draw())


def test_randomness() -> None:
    """All that is drawn, and every clock, comes from the seed; afterwards they are the machine's again."""
    before = random.getstate()
    assert _draw(1) == _draw(1)
    assert not set(_draw(1)[:4]) & set(_draw(2)[:4])
    assert random.getstate() == before
    assert os.urandom(8) != os.urandom(8)
    assert abs(time.time() - time.clock_gettime(time.CLOCK_REALTIME)) < 1


def test_no_address_has_a_name() -> None:
    """Looking one up fails, as by a name server."""

    async def ask() -> object:
        return await asyncio.get_running_loop().getnameinfo(("10.0.0.1", 0), 0)

    with pytest.raises(OSError, match="has no name"):
        World(1).run(ask())


def test_timers_are_not_early() -> None:
    """A task wakes when its time has come, also where clocks run at other rates and have stood still."""
    world, at_random = World(1), random.Random(1)

    async def wait() -> None:
        loop, process = asyncio.get_running_loop(), PROCESS.get()
        for _ in range(1000):
            process.asleep, until = at_random.random(), loop.time() + at_random.random()
            await asyncio.sleep(until - loop.time())
            while loop.time() < until:
                await asyncio.sleep(until - loop.time())

    with interrupted(10):
        world.run(wait())
