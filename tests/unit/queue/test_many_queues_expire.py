"""Several queues of one process in which much expires at the same moment."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from services.queue import timers
from services.queue.timers import Timers
from tests.support.queue_house import House


async def test_others_have_their_turn_between_two(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may take as long as a turn may: one after the other, all of them would hold up what they all wait for."""
    host = house.queues["queue-1"]._host
    declared = [await house.declare(f"q{number}", table={"x-expires": 60_000}) for number in range(5)]
    clock, turns, looked = count(), list[int](), list[int]()
    monkeypatch.setattr(timers, "monotonic", lambda: next(clock))
    mine = asyncio.current_task()
    for queue in map(host.registry.queues.__getitem__, declared):

        def noted(_now: int) -> None:
            if asyncio.current_task() is not mine:  # the process's own clock
                return
            looked.append(len(looked) + 1)
            asyncio.get_running_loop().call_soon(lambda: turns.append(len(looked)))

        monkeypatch.setattr(queue, "deadline", lambda: 1)
        monkeypatch.setattr(queue, "expire", noted)
    await Timers(host, lambda: True).tick(2)
    assert turns == looked == [1, 2, 3, 4, 5]
