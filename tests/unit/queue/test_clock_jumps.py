"""Messages with a time to live, when a wall clock jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from services.common import clock
from services.common.clock import epoch_ms
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House

_DAY = 86_400


class Wall(clock.Machine):
    """Can be set."""

    off = 0

    def time_ns(self) -> int:
        return super().time_ns() + self.off * 1_000_000_000


@pytest.fixture
def wall() -> Iterator[Wall]:
    wall = Wall()
    clock.set_source(wall)
    yield wall
    clock.set_source(clock.Machine())


async def looked(house: House, times: Callable[[], int]) -> None:
    """Timers have looked since."""
    before = times()
    async with asyncio.timeout(60):
        while times() < before + 3:
            house.queues["queue-1"]._host.timed.set()
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("off", [_DAY, -_DAY])
async def test_nothing_expires_for_a_jump(house: House, wall: Wall, off: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither messages nor queues end when the clock jumps by a day, and what comes later lives as long."""
    queue_id = await house.declare("q", message_ttl=60_000, expires=60_000)
    short = await house.declare("short", message_ttl=300)
    link = await house.link()
    await link.publish(queue_id, [b"1"], time_ms=epoch_ms())
    host = house.queues["queue-1"]._host
    ticks = 0
    check = host.check_full

    def counted() -> None:
        nonlocal ticks
        ticks += 1
        check()

    monkeypatch.setattr(type(host), "check_full", lambda _: counted())
    wall.off = off
    await looked(house, lambda: ticks)
    await link.publish(queue_id, [b"2"], time_ms=epoch_ms())
    await looked(house, lambda: ticks)
    assert await link.ready(queue_id, 1) == 2
    await link.publish(short, [b"3"], time_ms=epoch_ms())
    async with asyncio.timeout(60):
        for number in range(10, 10_000):
            if await link.ready(short, number) == 0:
                break
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("off", [3600, -3600])
async def test_a_gateway_whose_clock_differs(house: House, off: int) -> None:
    """A message that comes for the first time has just come; on disk too, where the next owner finds it."""
    queue_id = await house.declare("q", durable=True, message_ttl=600_000)
    link = await house.link()
    await link.publish(queue_id, [b"1"], persistent=True, time_ms=epoch_ms() + off * 1000)
    assert await link.ready(queue_id, 1) == 1
    [expires] = [entry.expires for entry in house.queues["queue-1"]._host.registry.queues[queue_id].entries()]
    assert abs(expires - epoch_ms() - 600_000) < 60_000
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-2")
    [again] = [entry.expires for entry in house.queues["queue-2"]._host.registry.queues[queue_id].entries()]
    assert abs(again - expires) < 1000


async def test_what_was_sent_before_is_as_old_as_it_is(house: House) -> None:
    """A message that is sent again to the next owner has lived since it was sent first."""
    queue_id = await house.declare("q", message_ttl=60_000)
    link = await house.link()
    await link.publish(queue_id, [b"1"], time_ms=epoch_ms() - 61_000, resent=True)
    assert await link.ready(queue_id, 1) == 0
    assert pb.OVERFLOW not in [reason for _, _, reason in link.refusals()]
