"""Several queues of one process in which much expires at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from structlog.testing import capture_logs

from services.common.topology.slots import SlotId
from services.queue import timers
from services.queue.timers import Timers
from services.rpc.router_pb2 import QueueDefinition
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


async def test_queues_of_which_nothing_is_due(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: each partition would look through all of them, as often as a message expires."""

    class LookedUp(dict[SlotId, QueueDefinition]):
        def __iter__(self) -> Iterator[SlotId]:
            raise AssertionError("each is looked at")

        def keys(self) -> Any:
            return iter(self)

    host = house.queues["queue-1"]._host
    await house.declare("q")
    monkeypatch.setattr(host.registry, "definitions", LookedUp(host.registry.definitions))
    with capture_logs() as lines:
        await Timers(host, lambda: True).tick(2)
    assert not lines
